// Feeds bytes to a kind of source, as a file in memory.
#ifndef ADAM_TESTS_SOURCE_INPUT_H
#define ADAM_TESTS_SOURCE_INPUT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"
#include "data/dataset.h"
#include "sample/source.h"

#define INPUT_PATH 64

// A file that holds these bytes, until the next call; `path` names it.
static inline void input_file(char path[INPUT_PATH], const uint8_t *data, size_t size) {
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    snprintf(path, INPUT_PATH, "/proc/self/fd/%d", fd);
}

// What every sample must keep to, whatever the bytes were.
static inline void input_check(const struct sample *sample, const struct classes *classes) {
    const struct image *image = &sample->image;
    if (!sample->key || !sample->path || sample->label < LABEL_NONE ||
        sample->label >= classes->count)
        abort();
    if (sample->encoded_size == 0 && (image->width < 1 || image->height < 1 ||
                                      image->channels < 1 || image_bytes(image) > image->capacity))
        abort();
}

// Reads it all. A report needs a path and a reason; a stream must come to an end.
static inline void input_read(const char *path, const char *from) {
    struct source_options options = {.from = from, .max_bytes = 1 << 20, .separator = '\n'};
    struct classes classes = {0};
    struct sample sample = {0};
    struct source *source = NULL;
    struct error err = {0};
    bool more = true;
    int status = source_open(&source, path, &options, &classes, &err);
    if (status && !*err.text)
        abort();
    while (!status && more) {
        err.text[0] = 0;
        status = source_next(source, &sample, &more, &err);
        if (status && !*err.text)
            abort();
        if (status == STATUS_SKIPPED) {
            if (!sample.path)
                abort();
            status = STATUS_OK;
        } else if (!status && more) {
            input_check(&sample, &classes);
        }
    }
    if (err.status == STATUS_BUG)
        abort();
    source_close(source);
    sample_free(&sample);
    classes_free(&classes);
}

#endif
