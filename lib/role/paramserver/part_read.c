#include "role/paramserver/part_read.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/io.h"
#include "core/mem.h"
#include "run/checkpoint_parts.h"

struct reading { // until its answer is sent
    struct link_part part;
    uint64_t size;
    char bytes[];
};

static char *path_of(const char *dir, const struct proto_read_part *message) {
    char name[CHECKPOINT_PART_NAME], *path = NULL;
    char *folder = checkpoint_own_folder(dir, message->run.bytes, message->token.bytes);
    checkpoint_part_name(name, message->part, message->parts);
    if (folder && asprintf(&path, "%s/%s", folder, name) < 0)
        path = NULL;
    free(folder);
    return path;
}

// As many bytes as there are, of those that are wanted.
static int read_bytes(struct reading *reading, int fd, const struct proto_read_part *message,
                      const char *path, struct error *err) {
    struct stat about;
    if (message->offset > INT64_MAX)
        return error_set(err, STATUS_DATA, "%s has no byte %" PRIu64, path, message->offset);
    if (fstat(fd, &about))
        return error_errno(err, STATUS_IO, "%s", path);
    reading->size = (uint64_t)about.st_size;
    ssize_t n = io_read_at(fd, reading->bytes, message->bytes, (off_t)message->offset);
    if (n < 0)
        return error_errno(err, STATUS_IO, "%s", path);
    reading->part = (struct link_part){reading->bytes, (size_t)n};
    return STATUS_OK;
}

static int open_and_read(struct reading *reading, const char *dir,
                         const struct proto_read_part *message, struct error *err) {
    if (!dir)
        return error_set(err, STATUS_NOINPUT,
                         "it has no folder for parts: --checkpoints DIR names it");
    char *path = path_of(dir, message);
    if (!path || !reading) {
        free(path);
        return error_nomem(err);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int status = fd < 0 ? error_errno(err, STATUS_NOINPUT, "%s", path)
                        : read_bytes(reading, fd, message, path, err);
    if (fd >= 0)
        close(fd);
    free(path);
    return status;
}

void part_read(const char *folder, const char *name, const struct queued_request *queued) {
    const struct proto_read_part *message = &queued->message->message.read_part;
    struct reading *reading = mem_array(1, sizeof *reading + message->bytes);
    struct error err = {0};
    if (open_and_read(reading, folder, message, &err)) {
        error_context(&err, "%s", name);
        link_refuse(queued->link, queued->request, PROTO_REFUSAL_STORAGE, 0, err.text);
        free(reading);
        return;
    }
    const struct proto_part answer = {.size = reading->size};
    const struct link_payload payload = {&reading->part, 1, free, reading};
    if (link_answer(queued->link, queued->request, PROTO_TYPE_PART, &answer, &payload, &err))
        link_break(queued->link, err.text);
}
