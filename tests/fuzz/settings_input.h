// What settings must keep to, whoever wrote them.
#ifndef ADAM_TESTS_SETTINGS_INPUT_H
#define ADAM_TESTS_SETTINGS_INPUT_H

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "run/settings.h"

// Sense or a message; and what is told to the members of a run is what they read.
static inline void settings_examine(const struct settings *settings) {
    struct settings told;
    struct error err = {0};
    if (settings_check(settings, &err) && !*err.text)
        abort();
    char *text = settings_text(settings), *copy = text ? strdup(text) : NULL;
    settings_default(&told);
    if (!copy || settings_parse(&told, copy, &err))
        abort();
    char *again = settings_text(&told);
    if (!again || strcmp(again, text) != 0)
        abort();
    free(again), free(copy), free(text);
}

#endif
