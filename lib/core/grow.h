// A text that grows at its end. That memory ran out is remembered, so that a
// writer need not ask after each piece (open_memstream does not tell reliably).
#ifndef ADAM_CORE_GROW_H
#define ADAM_CORE_GROW_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct grow {
    char *text; // NUL-terminated, or NULL while nothing was put
    size_t length, room;
    bool failed; // out of memory: what is put from then on is dropped
};

void grow_put(struct grow *grow, const char *text, size_t length);
void grow_format(struct grow *grow, const char *format, ...) __attribute__((format(printf, 2, 3)));
void grow_vformat(struct grow *grow, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

// The text, to be freed with free(); NULL when memory ran out. The grow is empty
// afterwards.
char *grow_take(struct grow *grow);

#endif
