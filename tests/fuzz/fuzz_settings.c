// The settings of a run as the wire has them, over its defaults: all or nothing.
#include <stdint.h>

#include "core/error.h"
#include "settings_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct settings settings;
    struct error err = {0};
    char *text = strndup((const char *)data, size);
    if (!text)
        return 0;
    settings_default(&settings);
    int status = settings_parse(&settings, text, &err);
    if (status && !*err.text)
        abort();
    settings_examine(&settings);
    free(text);
    return 0;
}
