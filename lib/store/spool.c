#include "store/spool.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"

struct spool {
    FILE *file;
    bool unwritten; // something may still be in stdio's buffer
};

static const char *spool_folder(void) {
    const char *set = getenv("TMPDIR");
    return set && *set ? set : "/tmp";
}

static int spool_error(struct error *err) {
    return error_errno(err, STATUS_IO, "cannot keep a temporary file in %s", spool_folder());
}

static FILE *open_nameless(void) {
    char *name = NULL;
    if (asprintf(&name, "%s/adam-XXXXXX", spool_folder()) < 0)
        return NULL;
    int fd = mkstemp(name);
    if (fd >= 0)
        unlink(name);
    free(name);
    FILE *file = fd >= 0 ? fdopen(fd, "w+b") : NULL;
    if (!file && fd >= 0)
        close(fd);
    return file;
}

int spool_open(struct spool **out, struct error *err) {
    struct spool *spool = mem_zeroed(1, sizeof *spool);
    if (!spool)
        return error_nomem(err);
    spool->file = open_nameless();
    if (!spool->file) {
        free(spool);
        return spool_error(err);
    }
    *out = spool;
    return STATUS_OK;
}

void spool_close(struct spool *spool) {
    if (!spool)
        return;
    fclose(spool->file);
    free(spool);
}

int spool_write(struct spool *spool, const void *data, size_t size, struct error *err) {
    spool->unwritten = true;
    return fwrite(data, 1, size, spool->file) == size ? STATUS_OK : spool_error(err);
}

int spool_rewind(struct spool *spool, struct error *err) {
    return fseeko(spool->file, 0, SEEK_SET) ? spool_error(err) : STATUS_OK;
}

int spool_read(struct spool *spool, void *data, size_t size, size_t *got, struct error *err) {
    *got = fread(data, 1, size, spool->file);
    return *got < size && ferror(spool->file) ? spool_error(err) : STATUS_OK;
}

int spool_read_at(struct spool *spool, uint64_t offset, void *data, size_t size, size_t *got,
                  struct error *err) {
    if (spool->unwritten && fflush(spool->file))
        return spool_error(err);
    spool->unwritten = false;
    ssize_t n = pread(fileno(spool->file), data, size, (off_t)offset);
    *got = n < 0 ? 0 : (size_t)n;
    return n < 0 ? spool_error(err) : STATUS_OK;
}

int spool_copy(struct spool *spool, struct output *output, struct error *err) {
    char block[1 << 16];
    size_t got = 1;
    int status = spool_rewind(spool, err);
    while (!status && got > 0) {
        if (!(status = spool_read(spool, block, sizeof block, &got, err)))
            status = output_write(output, block, got, err);
    }
    return status;
}
