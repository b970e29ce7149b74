// Pieces of bytes parked in a temporary file (store/spool.h) while they do not
// fit in memory, and read again in as many places at a time as is wanted. STATUS_IO, as of spools.
#ifndef ADAM_PREP_PARK_H
#define ADAM_PREP_PARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

struct park; // belongs to one thread

int park_open(struct park **out, struct error *err);
void park_close(struct park *park);

// Adds a piece at the end.
int park_put(struct park *park, const void *piece, size_t size, struct error *err);
// Where the next piece will stand.
uint64_t park_end(const struct park *park);

// Reads the pieces between two places that park_end gave, one after the other.
struct park_reader {
    struct park *park;
    uint64_t at, end;
    uint8_t *buffer; // what was read ahead
    size_t filled, used, capacity;
    uint8_t *piece; // the last piece; the reader's, until the next one is asked for
    size_t size, piece_capacity;
};

int park_read(struct park_reader *reader, struct park *park, uint64_t from, uint64_t to,
              size_t buffer_size, struct error *err);
int park_next(struct park_reader *reader, bool *more, struct error *err);
void park_reader_free(struct park_reader *reader);

#endif
