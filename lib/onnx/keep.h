// Memory that lives until all of it goes at once: nodes, names and numbers of a graph. Inside
// lib/onnx only.
//
// That memory ran out is remembered, so that a writer need not ask after each word: what is given
// from then on is NULL, and of texts "".
#ifndef ADAM_ONNX_KEEP_H
#define ADAM_ONNX_KEEP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

// A list of pointers that grows.
struct list {
    void **items;
    size_t count, room;
};

struct keep {
    struct list kept;
    bool failed; // memory is out
};

void keep_free(struct keep *keep);
void keep_add(struct keep *keep, struct list *list,
              void *item);                                 // free(list->items) is the caller's
void *keep_room(struct keep *keep, size_t n, size_t size); // zeroed
char *keep_text(struct keep *keep, const char *text);
const char *keep_format(struct keep *keep, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *keep_vformat(struct keep *keep, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

#endif
