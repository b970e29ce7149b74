// Small files for C tests, below $TMPDIR.
#ifndef ADAM_TESTS_TEMPFILE_H
#define ADAM_TESTS_TEMPFILE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEMPFILE_PATH 256

// A new file with these bytes; the caller unlinks `path`.
static inline void tempfile_write(char path[TEMPFILE_PATH], const void *data, size_t size) {
    const char *folder = getenv("TMPDIR");
    snprintf(path, TEMPFILE_PATH, "%s/adam-test-XXXXXX", folder ? folder : "/tmp");
    int fd = mkstemp(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file)) {
        perror(path);
        exit(2);
    }
}

#endif
