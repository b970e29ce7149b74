#include "data/park.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/mem.h"

struct park {
    FILE *file;
    uint64_t end;
    bool unflushed;
    char *folder;
};

// A file without a name; where the file system knows no such thing, its name
// is taken away at once.
static int nameless_file(const char *folder) {
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/adam-XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof path)
        return -1;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

int park_open(struct park **out, struct error *err) {
    const char *folder = getenv("TMPDIR");
    folder = folder && *folder ? folder : "/tmp";
    struct park *park = mem_zeroed(1, sizeof *park);
    char *name = mem_string(folder);
    int fd = nameless_file(folder);
    FILE *file = fd >= 0 ? fdopen(fd, "w+") : NULL;
    if (!park || !name || !file) {
        int status = fd < 0 ? error_errno(err, STATUS_CANTCREATE,
                                          "cannot make a temporary file in %s", folder)
                            : error_nomem(err);
        if (file)
            fclose(file);
        else if (fd >= 0)
            close(fd);
        free(name);
        free(park);
        return status;
    }
    *park = (struct park){.file = file, .folder = name};
    *out = park;
    return STATUS_OK;
}

void park_close(struct park *park) {
    if (!park)
        return;
    fclose(park->file);
    free(park->folder);
    free(park);
}

static int cannot_write(const struct park *park, struct error *err) {
    return error_errno(err, STATUS_IO, "cannot write to the temporary file in %s (see TMPDIR)",
                       park->folder);
}

int park_put(struct park *park, const void *piece, size_t size, struct error *err) {
    uint64_t length = size;
    if (fwrite(&length, sizeof length, 1, park->file) != 1 ||
        fwrite(piece, 1, size, park->file) != size)
        return cannot_write(park, err);
    park->end += sizeof length + size;
    park->unflushed = true;
    return STATUS_OK;
}

uint64_t park_end(const struct park *park) {
    return park->end;
}

int park_read(struct park_reader *reader, struct park *park, uint64_t from, uint64_t to,
              size_t buffer_size, struct error *err) {
    *reader = (struct park_reader){.park = park, .at = from, .end = to, .capacity = buffer_size};
    if (park->unflushed && fflush(park->file))
        return cannot_write(park, err);
    park->unflushed = false;
    reader->buffer = mem_array(buffer_size, 1);
    return reader->buffer ? STATUS_OK : error_nomem(err);
}

static int fill(struct park_reader *r, struct error *err) {
    size_t wanted = r->end - r->at < r->capacity ? (size_t)(r->end - r->at) : r->capacity;
    ssize_t n = pread(fileno(r->park->file), r->buffer, wanted, (off_t)r->at);
    if (n < 0)
        return error_errno(err, STATUS_IO, "cannot read the temporary file in %s", r->park->folder);
    if (n == 0)
        return error_set(err, STATUS_IO, "the temporary file in %s is cut short", r->park->folder);
    r->at += (uint64_t)n;
    r->filled = (size_t)n, r->used = 0;
    return STATUS_OK;
}

static int get(struct park_reader *r, void *to, size_t size, struct error *err) {
    for (size_t done = 0; done < size;) {
        int status = r->used == r->filled ? fill(r, err) : STATUS_OK;
        if (status)
            return status;
        size_t n = r->filled - r->used < size - done ? r->filled - r->used : size - done;
        memcpy((uint8_t *)to + done, r->buffer + r->used, n);
        r->used += n, done += n;
    }
    return STATUS_OK;
}

int park_next(struct park_reader *reader, bool *more, struct error *err) {
    uint64_t length;
    *more = reader->used < reader->filled || reader->at < reader->end;
    if (!*more)
        return STATUS_OK;
    int status = get(reader, &length, sizeof length, err);
    if (status)
        return status;
    if (length > reader->end - reader->at + (reader->filled - reader->used))
        return error_set(err, STATUS_IO, "the temporary file in %s is damaged",
                         reader->park->folder);
    if (length > reader->piece_capacity) {
        free(reader->piece);
        reader->piece_capacity = 0;
        reader->piece = mem_array(length, 1);
        if (!reader->piece)
            return error_nomem(err);
        reader->piece_capacity = length;
    }
    reader->size = length;
    return get(reader, reader->piece, length, err);
}

void park_reader_free(struct park_reader *reader) {
    free(reader->buffer);
    free(reader->piece);
    *reader = (struct park_reader){0};
}
