// The file of a run of many processes: settings and what they set of the model, or a
// message that says where.
#include "core/error.h"
#include "run/run_file.h"
#include "settings_input.h"
#include "source_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[INPUT_PATH];
    struct run_file file;
    struct error err = {0};
    input_file(path, data, size);
    int status = run_file_read(&file, path, &err);
    if (status && strncmp(err.text, path, strlen(path)) != 0)
        abort();
    if (status && (file.texts || file.sets))
        abort();
    if (!status)
        settings_examine(&file.settings);
    for (size_t i = 0; i < file.set_count; i++)
        if (!strchr(file.sets[i], '=') || !strchr(file.sets[i], '.'))
            abort();
    run_file_free(&file);
    return 0;
}
