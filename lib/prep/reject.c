#include "prep/reject.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/printable.h"
#include "store/output.h"

struct reject {
    FILE *file;
    char *path;
};

static bool is_same_file(const char *one, const char *other) {
    struct stat of_one, of_other;
    if (stat(one, &of_one) == 0 && stat(other, &of_other) == 0)
        return S_ISREG(of_one.st_mode) && of_one.st_dev == of_other.st_dev &&
               of_one.st_ino == of_other.st_ino;
    return output_same(one, other);
}

int reject_check(const char *path, const char *const *names, size_t count, struct error *err) {
    for (size_t i = 0; i < count && strcmp(path, "-") != 0; i++)
        if (names[i] && is_same_file(path, names[i]))
            return error_set(err, STATUS_USAGE,
                             "--reject: '%s' is %s itself, which the list would replace", path,
                             names[i]);
    return STATUS_OK;
}

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
