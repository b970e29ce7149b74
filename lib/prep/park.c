#include "prep/park.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "store/spool.h"

struct park {
    struct spool *spool;
    uint64_t end;
};

int park_open(struct park **out, struct error *err) {
    struct park *park = mem_zeroed(1, sizeof *park);
    if (!park)
        return error_nomem(err);
    int status = spool_open(&park->spool, err);
    if (status)
        free(park);
    else
        *out = park;
    return status;
}

void park_close(struct park *park) {
    if (!park)
        return;
    spool_close(park->spool);
    free(park);
}

int park_put(struct park *park, const void *piece, size_t size, struct error *err) {
    uint64_t length = size;
    int status = spool_write(park->spool, &length, sizeof length, err);
    if (!status)
        status = spool_write(park->spool, piece, size, err);
    park->end += sizeof length + size;
    return status;
}

uint64_t park_end(const struct park *park) {
    return park->end;
}

int park_read(struct park_reader *reader, struct park *park, uint64_t from, uint64_t to,
              size_t buffer_size, struct error *err) {
    *reader = (struct park_reader){.park = park, .at = from, .end = to, .capacity = buffer_size};
    reader->buffer = mem_array(buffer_size, 1);
    return reader->buffer ? STATUS_OK : error_nomem(err);
}

static int fill_buffer(struct park_reader *r, struct error *err) {
    size_t wanted = r->end - r->at < r->capacity ? (size_t)(r->end - r->at) : r->capacity;
    size_t got;
    int status = spool_read_at(r->park->spool, r->at, r->buffer, wanted, &got, err);
    if (status)
        return status;
    if (got == 0)
        return error_set(err, STATUS_IO, "a temporary file is cut short");
    r->at += got;
    r->filled = got, r->used = 0;
    return STATUS_OK;
}

static int get_bytes(struct park_reader *r, void *to, size_t size, struct error *err) {
    for (size_t done = 0; done < size;) {
        int status = r->used == r->filled ? fill_buffer(r, err) : STATUS_OK;
        if (status)
            return status;
        size_t n = r->filled - r->used < size - done ? r->filled - r->used : size - done;
        memcpy((uint8_t *)to + done, r->buffer + r->used, n);
        r->used += n, done += n;
    }
    return STATUS_OK;
}

int park_next(struct park_reader *reader, bool *more, struct error *err) {
    uint64_t length;
    *more = reader->used < reader->filled || reader->at < reader->end;
    if (!*more)
        return STATUS_OK;
    int status = get_bytes(reader, &length, sizeof length, err);
    if (status)
        return status;
    if (length > reader->end - reader->at + (reader->filled - reader->used))
        return error_set(err, STATUS_IO, "a temporary file is damaged");
    if (length > reader->piece_capacity) {
        free(reader->piece);
        reader->piece_capacity = 0;
        reader->piece = mem_array(length, 1);
        if (!reader->piece)
            return error_nomem(err);
        reader->piece_capacity = length;
    }
    reader->size = length;
    return get_bytes(reader, reader->piece, length, err);
}

void park_reader_free(struct park_reader *reader) {
    free(reader->buffer);
    free(reader->piece);
    *reader = (struct park_reader){0};
}
