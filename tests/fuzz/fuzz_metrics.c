// A run's metrics: JSON lines that somebody else may have written.
#include "core/error.h"
#include "report/history.h"
#include "source_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[INPUT_PATH];
    struct history history = {0};
    struct error err = {0};
    input_file(path, data, size);
    int status = history_read(&history, path, &err);
    if (status && !*err.text)
        abort();
    for (int c = 0; !status && c < HISTORY_CURVES; c++) {
        size_t at = 0;
        curve_best(&history.curves[c], &at);
        curve_last(&history.curves[c]);
    }
    history_free(&history);
    return 0;
}
