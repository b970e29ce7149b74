#include "store/content.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/io.h"
#include "core/mem.h"
#include "store/crc.h"

enum { PIECE = 1 << 18 }; // bytes that a checksum takes at a time, which stay in a cache

int content_open(struct content *content, const char *path, struct error *err) {
    struct stat about;
    // A pipe is refused, not waited for.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *content = (struct content){.fd = -1};
    if (fd < 0)
        return error_errno(err, STATUS_NOINPUT, "cannot open %s", path);
    if (fstat(fd, &about) || !S_ISREG(about.st_mode)) {
        close(fd);
        return error_set(err, STATUS_NOINPUT, "%s: is no plain file", path);
    }
    *content = (struct content){fd, (uint64_t)about.st_size};
    return STATUS_OK;
}

void content_close(struct content *content) {
    if (content->fd >= 0)
        close(content->fd);
    *content = (struct content){.fd = -1};
}

int content_read(const struct content *content, void *into, uint64_t at, size_t size,
                 struct error *err) {
    ssize_t n = io_read_at(content->fd, into, size, (off_t)at);
    if (n < 0)
        return error_errno(err, STATUS_IO, "cannot read it");
    return (size_t)n == size ? STATUS_OK
                             : error_set(err, STATUS_DATA,
                                         "it ends at byte %llu, and became shorter while it was "
                                         "read",
                                         (unsigned long long)at + (unsigned long long)n);
}

int content_crc(const struct content *content, uint32_t *crc, struct error *err) {
    unsigned char *piece = mem_array(PIECE, 1);
    int status = piece ? STATUS_OK : error_nomem(err);
    *crc = 0;
    for (uint64_t at = 0; !status && at < content->size; at += PIECE) {
        uint64_t left = content->size - at;
        size_t size = left < PIECE ? (size_t)left : PIECE;
        status = content_read(content, piece, at, size, err);
        if (!status)
            *crc = crc32_of(*crc, piece, size);
    }
    free(piece);
    return status;
}
