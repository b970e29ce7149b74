#include "core/io.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/text.h"

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

// *length does not count the NUL behind it.
static void drop_mark(char *line, ssize_t *length) {
    size_t mark = text_mark(line, (size_t)*length);
    memmove(line, line + mark, (size_t)*length - mark + 1);
    *length -= (ssize_t)mark;
}

int io_line(FILE *file, const char *path, char **line, size_t *room, ssize_t *length,
            struct error *err) {
    bool first = !*line;
    errno = 0;
    *length = getline(line, room, file);
    if (first && *length > 0)
        drop_mark(*line, length);
    if (ferror(file))
        return error_errno(err, STATUS_IO, "%s", path);
    return *length < 0 && !feof(file) ? error_nomem(err) : STATUS_OK;
}
