// In front of the floats stands how long the mapping is.
#include "store/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"

enum { HEAD = MEM_ALIGN };

static int open_nameless(const char *folder) {
    char *path = NULL;
    if (asprintf(&path, "%s/.scratch-XXXXXX", folder) < 0)
        return -1;
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    free(path);
    return fd;
}

// All of it, so that no write to it fails for want of room.
static int reserve(int fd, size_t bytes) {
    int failure;
    do
        failure = posix_fallocate(fd, 0, (off_t)bytes);
    while (failure == EINTR);
    return failure;
}

static int map_file(float **out, int fd, size_t bytes, struct error *err) {
    char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return error_errno(err, STATUS_IO, "cannot map a file of %zu bytes", bytes);
    memcpy(base, &bytes, sizeof bytes);
    *out = (float *)(void *)(base + HEAD);
    return STATUS_OK;
}

int scratch_open(float **out, const char *folder, size_t n, struct error *err) {
    size_t bytes;
    if (__builtin_mul_overflow(n, sizeof(float), &bytes) ||
        __builtin_add_overflow(bytes, HEAD, &bytes))
        return error_nomem(err);
    int fd = open_nameless(folder);
    if (fd < 0)
        return error_errno(err, STATUS_CANTCREATE, "cannot make a file in %s", folder);
    int failure = reserve(fd, bytes);
    errno = failure;
    int status = failure ? error_errno(err, STATUS_IO, "no room in %s for %zu numbers", folder, n)
                         : map_file(out, fd, bytes, err);
    close(fd);
    return status;
}

void scratch_free(float *floats) {
    size_t bytes;
    if (!floats)
        return;
    char *base = (char *)floats - HEAD;
    memcpy(&bytes, base, sizeof bytes);
    munmap(base, bytes);
}
