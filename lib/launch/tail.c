#include "launch/tail.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 16384 }; // a longer line is told in pieces

void tail_open(struct tail *tail, const char *path, tail_lines *told, void *self) {
    struct stat stat_of;
    *tail = (struct tail){.path = path, .told = told, .self = self, .fd = -1};
    if (stat(path, &stat_of) == 0)
        tail->at = stat_of.st_size;
}

void tail_more(struct tail *tail) {
    char text[PIECE + 1];
    ssize_t length;
    if (tail->fd < 0)
        tail->fd = open(tail->path, O_RDONLY | O_CLOEXEC);
    while (tail->fd >= 0 && (length = pread(tail->fd, text, PIECE, tail->at)) > 0) {
        char *end = memrchr(text, '\n', (size_t)length);
        if (!end && length < PIECE)
            break; // not yet a whole line
        tail->at += end ? end + 1 - text : length;
        *(end ? end : text + length) = 0;
        if (tail->told)
            tail->told(tail->self, text);
    }
}

void tail_close(struct tail *tail) {
    if (tail->fd >= 0)
        close(tail->fd);
    tail->fd = -1;
}
