#include "proto/cursor.h"

#include <string.h>

const uint8_t *cursor_bytes(struct cursor *cursor, size_t bytes) {
    if (cursor->failed || bytes > cursor->left) {
        cursor->failed = true;
        return NULL;
    }
    const uint8_t *at = cursor->at;
    cursor->at += bytes;
    cursor->left -= bytes;
    return at;
}

uint64_t cursor_number(struct cursor *cursor, size_t bytes) {
    const uint8_t *at = cursor_bytes(cursor, bytes);
    uint64_t value = 0;
    for (size_t i = 0; at && i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

void writer_number(struct writer *writer, uint64_t value, size_t bytes) {
    for (size_t i = 0; writer->at && i < bytes; i++)
        *writer->at++ = (uint8_t)(value >> 8 * i);
    writer->size += bytes;
}

void writer_bytes(struct writer *writer, const void *from, size_t bytes) {
    if (writer->at && bytes > 0) {
        memcpy(writer->at, from, bytes);
        writer->at += bytes;
    }
    writer->size += bytes;
}
