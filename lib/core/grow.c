#include "core/grow.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

// Makes room for `more` characters and the NUL.
static bool grow_reserve(struct grow *grow, size_t more) {
    size_t wanted;
    if (grow->failed || __builtin_add_overflow(grow->length, more, &wanted) ||
        __builtin_add_overflow(wanted, (size_t)1, &wanted)) {
        grow->failed = true;
        return false;
    }
    if (wanted <= grow->room)
        return true;
    size_t room = wanted < grow->room * 2 ? grow->room * 2 : wanted;
    char *text = mem_resize(grow->text, room, 1);
    if (!text) {
        grow->failed = true;
        return false;
    }
    grow->text = text;
    grow->room = room;
    return true;
}

void grow_put(struct grow *grow, const char *text, size_t length) {
    if (!grow_reserve(grow, length))
        return;
    if (length > 0)
        memcpy(grow->text + grow->length, text, length);
    grow->length += length;
    grow->text[grow->length] = 0;
}

void grow_vformat(struct grow *grow, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length < 0)
        grow->failed = true;
    if (length >= 0 && grow_reserve(grow, (size_t)length)) {
        vsnprintf(grow->text + grow->length, (size_t)length + 1, format, again);
        grow->length += (size_t)length;
    }
    va_end(again);
}

void grow_format(struct grow *grow, const char *format, ...) {
    va_list args;
    va_start(args, format);
    grow_vformat(grow, format, args);
    va_end(args);
}

char *grow_take(struct grow *grow) {
    if (!grow->failed)
        grow_put(grow, "", 0);
    char *text = grow->text;
    if (grow->failed) {
        free(text);
        text = NULL;
    }
    *grow = (struct grow){0};
    return text;
}
