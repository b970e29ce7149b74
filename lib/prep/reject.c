#include "prep/reject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/printable.h"

struct reject {
    FILE *file;
    char *path;
};

int reject_open(struct reject **out, const char *path, struct error *err) {
    struct reject *reject = mem_zeroed(1, sizeof *reject);
    bool standard = !strcmp(path, "-");
    char *copy = mem_string(standard ? "standard output" : path);
    FILE *file = !reject || !copy ? NULL
                 : standard       ? fdopen(dup(STDOUT_FILENO), "w")
                                  : fopen(path, "we");
    if (!file) {
        int status = reject && copy ? error_errno(err, STATUS_CANTCREATE, "cannot create %s", path)
                                    : error_nomem(err);
        free(copy);
        free(reject);
        return status;
    }
    *reject = (struct reject){file, copy};
    *out = reject;
    return STATUS_OK;
}

int reject_put(struct reject *reject, const char *path, const char *reason, struct error *err) {
    printable_value(reject->file, path);
    putc('\t', reject->file);
    printable_value(reject->file, reason);
    putc('\n', reject->file);
    if (ferror(reject->file) || fflush(reject->file))
        return error_errno(err, STATUS_IO, "cannot write %s", reject->path);
    return STATUS_OK;
}

int reject_close(struct reject *reject, struct error *err) {
    if (!reject)
        return STATUS_OK;
    int status = fclose(reject->file) ? error_errno(err, STATUS_IO, "cannot write %s", reject->path)
                                      : STATUS_OK;
    free(reject->path);
    free(reject);
    return status;
}
