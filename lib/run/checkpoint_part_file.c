// Writing one part of a checkpoint into a folder that another process made.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "run/checkpoint_internal.h"
#include "run/checkpoint_parts.h"

void checkpoint_token_text(char text[CHECKPOINT_TOKEN_TEXT],
                           const uint8_t token[CHECKPOINT_TOKEN]) {
    for (int i = 0; i < CHECKPOINT_TOKEN; i++)
        snprintf(text + 2 * i, 3, "%02x", token[i]);
}

static bool holds_token(const char *folder, const uint8_t token[CHECKPOINT_TOKEN]) {
    char *path = NULL, wanted[CHECKPOINT_TOKEN_TEXT], found[CHECKPOINT_TOKEN_TEXT] = "";
    if (asprintf(&path, "%s/%s", folder, CHECKPOINT_TOKEN_FILE) < 0)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, found, sizeof found - 1);
    if (fd >= 0)
        close(fd);
    free(path);
    checkpoint_token_text(wanted, token);
    return n == sizeof found - 1 && !strcmp(found, wanted);
}

static int write_header(struct checkpoint_part_file *file, const struct tensor *tensors,
                        size_t count, struct error *err) {
    json_t *metadata =
        json_pack("{s:s, s:s}", "format", CHECKPOINT_FORMAT, "index", CHECKPOINT_INDEX);
    int status = metadata
                     ? safetensors_write_header(file->fd, tensors, count, metadata, &file->sum, err)
                     : error_nomem(err);
    json_decref(metadata);
    return status;
}

int checkpoint_part_open(struct checkpoint_part_file *file, const char *folder,
                         const uint8_t token[CHECKPOINT_TOKEN], uint32_t part, uint32_t parts,
                         const struct tensor *tensors, size_t count, struct error *err) {
    char name[CHECKPOINT_PART_NAME];
    *file = (struct checkpoint_part_file){.fd = -1};
    if (!holds_token(folder, token))
        return error_set(err, STATUS_CANTCREATE,
                         "%s is not the folder that the controller made: is it shared?", folder);
    checkpoint_part_name(name, part, parts);
    if (asprintf(&file->path, "%s/%s", folder, name) < 0) {
        file->path = NULL;
        return error_nomem(err);
    }
    int status = checkpoint_create(folder, name, &file->fd, err);
    if (!status) {
        status = write_header(file, tensors, count, err);
        return status ? checkpoint_part_end(file, status, err) : STATUS_OK;
    }
    free(file->path);
    return status;
}

int checkpoint_part_write(struct checkpoint_part_file *file, const float *values, size_t n,
                          struct error *err) {
    return safetensors_write_data(file->fd, values, n * sizeof *values, &file->sum, err)
               ? error_context(err, "%s", file->path)
               : STATUS_OK;
}

int checkpoint_part_end(struct checkpoint_part_file *file, int status, struct error *err) {
    int ended = checkpoint_sync(file->fd, status, err);
    if (ended && !status)
        error_context(err, "%s", file->path);
    if (ended)
        unlink(file->path);
    free(file->path);
    return ended;
}
