// The bytes of a file, read where they are wanted: unlike those of a map, they end no process when
// somebody makes the file shorter meanwhile.
#ifndef ADAM_STORE_CONTENT_H
#define ADAM_STORE_CONTENT_H

#include <stddef.h>
#include <stdint.h>

struct error;

struct content {
    int fd; // below 0: not open
    uint64_t size;
};

// STATUS_NOINPUT when it cannot be opened or is no plain file; it is not open then.
int content_open(struct content *content, const char *path, struct error *err);
void content_close(struct content *content);

// `size` bytes from `at` on. STATUS_IO; STATUS_DATA: there are not so many, or not any more.
int content_read(const struct content *content, void *into, uint64_t at, size_t size,
                 struct error *err);
// CRC-32 of all. Statuses of content_read.
int content_crc(const struct content *content, uint32_t *crc, struct error *err);

#endif
