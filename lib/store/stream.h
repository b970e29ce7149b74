// A file or standard input as a stream of bytes. Gzip, zstd and xz are
// recognised by their first bytes and undone, so that every reader above takes
// plain and compressed inputs alike.
#ifndef ADAM_STORE_STREAM_H
#define ADAM_STORE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

struct stream; // belongs to one thread

// Asked several times a second while a stream waits for a pipe; true ends the wait with
// STATUS_STOPPED. `stop` may be NULL: it waits as long as it takes.
struct stream_wait {
    bool (*stop)(void *self);
    void *self;
};

// `path` "-" is standard input. STATUS_NOINPUT, STATUS_IO.
int stream_open(struct stream **out, const char *path, struct error *err);
// The same, which can be stopped while it opens or reads a pipe. Keeps a copy of `wait`.
int stream_open_stoppable(struct stream **out, const char *path, const struct stream_wait *wait,
                          struct error *err);
// A regular file. Anything else is STATUS_NOINPUT, says what it is, and is not opened.
int stream_open_regular(struct stream **out, const char *path, struct error *err);
void stream_close(struct stream *stream);

// Up to `n` bytes ahead, without taking them; fewer only when the stream ends
// there. *data stays valid until the next call. STATUS_DATA when the compressed
// data is damaged or ends too early, STATUS_IO.
int stream_peek(struct stream *stream, size_t n, const uint8_t **data, size_t *got,
                struct error *err);
// Takes `n` bytes; *got is less only when the stream ends there.
int stream_read(struct stream *stream, void *data, size_t n, size_t *got, struct error *err);
int stream_skip(struct stream *stream, uint64_t n, uint64_t *skipped, struct error *err);

// Bytes taken so far, counted behind the decompression.
uint64_t stream_offset(const struct stream *stream);
// The path, or "standard input", for messages.
const char *stream_name(const struct stream *stream);
// Length of the whole stream, or -1 when it is not known (a pipe, compressed).
int64_t stream_size(const struct stream *stream);

#endif
