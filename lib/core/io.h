// Reading of files, whatever signals come.
#ifndef ADAM_CORE_IO_H
#define ADAM_CORE_IO_H

#include <stddef.h>
#include <sys/types.h>

// The bytes of a file from `at` on: `size` of them, or as many as there are. Returns how many, or
// -1 with errno.
ssize_t io_read_at(int fd, void *into, size_t size, off_t at);

#endif
