#include "core/io.h"

#include <errno.h>
#include <unistd.h>

#include "core/error.h"

ssize_t io_read_at(int fd, void *into, size_t size, off_t at) {
    size_t got = 0;
    while (got < size) {
        ssize_t n = pread(fd, (char *)into + got, size - got, at + (off_t)got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

int io_line(FILE *file, const char *path, char **line, size_t *room, ssize_t *length,
            struct error *err) {
    errno = 0;
    *length = getline(line, room, file);
    if (ferror(file))
        return error_errno(err, STATUS_IO, "%s", path);
    return *length < 0 && !feof(file) ? error_nomem(err) : STATUS_OK;
}
