#include "prep/reject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

struct reject {
    FILE *file;
    char *path;
};

int reject_open(struct reject **out, const char *path, struct error *err) {
    struct reject *reject = mem_zeroed(1, sizeof *reject);
    char *copy = mem_string(path);
    FILE *file = reject && copy ? fopen(path, "we") : NULL;
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

char *reject_escaped(const char *text) {
    static const char plain[] = "\t\n\r\\", written[] = "tnr\\";
    char *escaped = mem_array(4 * strlen(text) + 1, 1), *to = escaped;
    for (; escaped && *text; text++) {
        const char *special = strchr(plain, *text);
        if (special)
            *to++ = '\\', *to++ = written[special - plain];
        else if ((unsigned char)*text < ' ' || *text == 0x7f)
            to += sprintf(to, "\\x%02x", (unsigned char)*text);
        else
            *to++ = *text;
    }
    if (escaped)
        *to = '\0';
    return escaped;
}

int reject_put(struct reject *reject, const char *path, const char *reason, struct error *err) {
    char *left = reject_escaped(path), *right = reject_escaped(reason);
    int status = STATUS_OK;
    if (!left || !right)
        status = error_nomem(err);
    else if (fprintf(reject->file, "%s\t%s\n", left, right) < 0 || fflush(reject->file))
        status = error_errno(err, STATUS_IO, "cannot write %s", reject->path);
    free(left);
    free(right);
    return status;
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
