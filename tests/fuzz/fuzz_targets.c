// Tables of targets: text and .npy, with names that are wanted and without.
#include <math.h>

#include "sample/targets.h"
#include "source_input.h"

static void check_row(const struct targets *targets, const char *key, uint64_t number) {
    struct error err = {0};
    uint32_t row;
    if (targets_find(targets, key, number, &row, &err)) {
        if (!*err.text)
            abort();
        return;
    }
    if (row >= targets_rows(targets))
        abort();
    for (int c = 0; c < targets_width(targets); c++)
        if (!isfinite(targets_at(targets, row)[c]))
            abort();
}

static void read_table(const char *path, bool known) {
    struct classes classes = {0};
    struct targets *targets = NULL;
    struct error err = {0};
    int label;
    if (known &&
        (classes_label(&classes, "a", &label, &err) || classes_label(&classes, "b", &label, &err)))
        abort();
    if (targets_open(&targets, path, &classes, &err)) {
        if (!*err.text || err.status == STATUS_BUG || targets)
            abort();
    } else {
        if (targets_width(targets) != classes.count)
            abort();
        check_row(targets, "a", 0);
        check_row(targets, "000001", targets_rows(targets));
    }
    targets_close(targets);
    classes_free(&classes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[INPUT_PATH];
    input_file(path, data, size);
    read_table(path, false);
    read_table(path, true);
    return 0;
}
