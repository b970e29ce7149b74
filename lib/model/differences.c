#include "model/differences.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN = 200 }; // bytes of a line

// Line `number`, from 0; NULL: there are fewer.
static const char *line_at(const char *text, int number) {
    while (text && number-- > 0)
        text = (text = strchr(text, '\n')) ? text + 1 : NULL;
    return text && *text ? text : NULL;
}

static int shown(size_t length) {
    return length < SHOWN ? (int)length : SHOWN;
}

bool model_difference(char text[MODEL_DIFFERENCE], const char *before, const char *after,
                      int *line) {
    const char *was = line_at(before, *line), *is = line_at(after, *line);
    for (; was && is; was = line_at(before, *line), is = line_at(after, *line)) {
        size_t old = strcspn(was, "\n"), new = strcspn(is, "\n");
        ++*line;
        if (old == new && !memcmp(was, is, new))
            continue;
        snprintf(text, MODEL_DIFFERENCE, "line %d of the model is '%.*s' now, was '%.*s'", *line,
                 shown(new), is, shown(old), was);
        return true;
    }
    return false;
}
