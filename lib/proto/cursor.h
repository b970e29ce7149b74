// Reading and writing little-endian numbers one after the other. A read beyond the end
// gives zeros and is remembered, so that a reader need not ask after each number.
#ifndef ADAM_PROTO_CURSOR_H
#define ADAM_PROTO_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
    const uint8_t *at;
    size_t left;
    bool failed; // something was read that is not there
};

// An integer of 1 to 8 bytes.
uint64_t cursor_number(struct cursor *cursor, size_t bytes);
// So many bytes as they are; NULL when they are not there.
const uint8_t *cursor_bytes(struct cursor *cursor, size_t bytes);

// A writer measures first: while `at` is NULL, only `size` grows. The sum cannot
// overflow: it is of things that are in memory.
struct writer {
    uint8_t *at;
    size_t size;
};

void writer_number(struct writer *writer, uint64_t value, size_t bytes);
void writer_bytes(struct writer *writer, const void *from, size_t bytes);

#endif
