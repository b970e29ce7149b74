#include "onnx/keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

void keep_free(struct keep *keep) {
    for (size_t i = 0; i < keep->kept.count; i++)
        free(keep->kept.items[i]);
    free(keep->kept.items);
    *keep = (struct keep){.failed = false};
}

void keep_add(struct keep *keep, struct list *list, void *item) {
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        void **items = mem_resize(list->items, room, sizeof *items);
        if (!items) {
            keep->failed = true;
            return;
        }
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = item;
}

void *keep_room(struct keep *keep, size_t n, size_t size) {
    void *memory = mem_zeroed(n, size);
    size_t before = keep->kept.count;
    if (memory)
        keep_add(keep, &keep->kept, memory);
    if (memory && keep->kept.count > before)
        return memory;
    free(memory);
    keep->failed = true;
    return NULL;
}

char *keep_text(struct keep *keep, const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = keep_room(keep, size, 1);
    return copy ? memcpy(copy, text, size) : NULL;
}

const char *keep_vformat(struct keep *keep, const char *format, va_list args) {
    char *text = NULL;
    int n = vasprintf(&text, format, args);
    const char *kept = n < 0 ? NULL : keep_text(keep, text);
    keep->failed |= n < 0;
    if (n >= 0)
        free(text);
    return kept ? kept : "";
}

const char *keep_format(struct keep *keep, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *kept = keep_vformat(keep, format, args);
    va_end(args);
    return kept;
}
