// JSON files with a checksum of their own. The text is indented, for people and jq; its last
// line but one is
//     "crc32": "1a2b3c4d"
// with the CRC-32 of all bytes before that line, so that every flipped bit is noticed.
#ifndef ADAM_STORE_SEALED_H
#define ADAM_STORE_SEALED_H

#include <stdbool.h>

#include "core/json.h"

struct error;

// The text of a non-empty object, without a key "crc32", to be freed with free(); NULL when
// out of memory.
char *sealed_text(const json_t *object);

// Writes it to a file, which appears complete or not at all. STATUS_CANTCREATE, STATUS_IO.
int sealed_write(const char *path, const json_t *object, struct error *err);

// Reads such a file, or one without the checksum: *sealed tells which. *out is a new reference,
// NULL on failure. STATUS_NOINPUT; STATUS_DATA: no JSON, or a checksum that is wrong.
int sealed_read(json_t **out, bool *sealed, const char *path, struct error *err);

#endif
