// Reading of files, whatever signals come.
#ifndef ADAM_CORE_IO_H
#define ADAM_CORE_IO_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct error;

// The bytes of a file from `at` on: `size` of them, or as many as there are. Returns how many, or
// -1 with errno.
ssize_t io_read_at(int fd, void *into, size_t size, off_t at);

// The next line of a file, with its end, the first without a byte-order mark; *length is -1 behind
// the last one. *line and *room begin as NULL and 0, and grow; the caller frees *line. STATUS_IO:
// the file cannot be read, or memory is out, which getline alone does not tell from the end. `path`
// is for the text.
int io_line(FILE *file, const char *path, char **line, size_t *room, ssize_t *length,
            struct error *err);

#endif
