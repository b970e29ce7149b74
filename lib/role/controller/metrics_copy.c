#include "role/controller/metrics_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/io.h"
#include "core/mem.h"
#include "run/metrics.h"

enum { ROOM = 1 << 18 }; // bytes of one answer: longer than a line that a member may report

static const double between_looks = 0.5;  // seconds from an answer with all to the next question
static const double between_trials = 5.0; // seconds after a copy that could not be written

struct metrics_copy {
    const char *folder;
    uint32_t id;
    struct gate *gate;
    uint32_t leader; // of whom it is a copy; PROTO_NOBODY
    int fd;          // of the file that grows; -1: none
    char *growing;   // its name, until it has caught up; NULL: it has its own name
    uint64_t size;   // bytes in it
    double due;      // clock_seconds of the next question
    bool told;       // an error
    // The question, and its answer as soon as `answered`.
    struct link_request request;
    bool asked;
    _Atomic bool answered;
    bool fresh;     // of the answer: it is one
    uint64_t total; // bytes that the leader has
    char bytes[ROOM];
};

static char *path_of(const char *folder, uint32_t id) {
    char *path = NULL;
    return asprintf(&path, "%s/controller-%" PRIu32 ".metrics", folder, id + 1) < 0 ? NULL : path;
}

static char *metrics_path(const char *folder) {
    char *path = NULL;
    return asprintf(&path, "%s/metrics.jsonl", folder) < 0 ? NULL : path;
}

// --- the file -----------------------------------------------------------------------------------

// What was copied before stays until the new copy has caught up.
static void leave_file(struct metrics_copy *copy) {
    if (copy->fd >= 0)
        close(copy->fd);
    if (copy->growing)
        unlink(copy->growing);
    free(copy->growing);
    copy->growing = NULL;
    copy->fd = -1;
    copy->size = 0;
}

static int begin_file(struct metrics_copy *copy, struct error *err) {
    leave_file(copy);
    if (asprintf(&copy->growing, "%s/controller-%" PRIu32 ".metrics.new", copy->folder,
                 copy->id + 1) < 0) {
        copy->growing = NULL;
        return error_nomem(err);
    }
    copy->fd = open(copy->growing, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return copy->fd < 0 ? error_errno(err, STATUS_CANTCREATE, "%s", copy->growing) : STATUS_OK;
}

static int append_bytes(struct metrics_copy *copy, size_t count, struct error *err) {
    for (size_t done = 0; done < count;) {
        ssize_t n = pwrite(copy->fd, copy->bytes + done, count - done, (off_t)(copy->size + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return error_errno(err, STATUS_IO, "%s/controller-%" PRIu32 ".metrics", copy->folder,
                               copy->id + 1);
        done += (size_t)n;
    }
    copy->size += count;
    return STATUS_OK;
}

static int name_file(struct metrics_copy *copy, struct error *err) {
    char *path = path_of(copy->folder, copy->id);
    int status = path ? STATUS_OK : error_nomem(err);
    if (!status && rename(copy->growing, path))
        status = error_errno(err, STATUS_CANTCREATE, "%s", path);
    free(path);
    if (status)
        return status;
    free(copy->growing);
    copy->growing = NULL;
    return STATUS_OK;
}

// --- standing by --------------------------------------------------------------------------------

// By a thread of the network.
static void take_answer(struct link_request *request) {
    struct metrics_copy *copy = request->context;
    copy->fresh = request->status == STATUS_OK && request->answer_type == PROTO_TYPE_METRICS;
    copy->total = copy->fresh ? request->answer->metrics.size : 0;
    atomic_store(&copy->answered, true);
    gate_open(copy->gate);
}

static void ask_leader(struct metrics_copy *copy, struct quorum *quorum) {
    const struct proto_get_metrics question = {.from = copy->size};
    copy->request = (struct link_request){
        .type = PROTO_TYPE_GET_METRICS,
        .message = &question,
        .into = copy->bytes,
        .room = sizeof copy->bytes,
        .done = take_answer,
        .context = copy,
    };
    copy->due = clock_seconds() + between_looks;
    copy->asked = quorum_ask(quorum, copy->leader, &copy->request, NULL) == STATUS_OK;
}

static int keep_answer(struct metrics_copy *copy, struct error *err) {
    int status = append_bytes(copy, copy->request.received, err);
    bool all = copy->request.received == 0 || copy->size >= copy->total;
    if (!status && all && copy->growing)
        status = name_file(copy, err);
    if (!status && !all)
        copy->due = 0;
    return status;
}

// Whoever it leads now. An answer of the one before is none.
static int follow_leader(struct metrics_copy *copy, uint32_t leader, struct error *err) {
    copy->fresh = false;
    copy->leader = leader;
    return begin_file(copy, err);
}

static int step(struct metrics_copy *copy, struct quorum *quorum, struct error *err) {
    uint32_t leader = quorum_leader(quorum);
    bool answered = copy->asked && atomic_exchange(&copy->answered, false);
    if (copy->asked && !answered)
        return STATUS_OK;
    copy->asked = false;
    if (leader == copy->id || leader == PROTO_NOBODY)
        return STATUS_OK;
    int status = STATUS_OK;
    if (leader == copy->leader && answered && copy->fresh)
        status = keep_answer(copy, err);
    if (status || clock_seconds() < copy->due)
        return status;
    if (leader != copy->leader)
        status = follow_leader(copy, leader, err);
    if (!status)
        ask_leader(copy, quorum);
    return status;
}

int metrics_copy_look(struct metrics_copy *copy, struct quorum *quorum, struct error *err) {
    struct error why = {0};
    int status = step(copy, quorum, &why);
    bool tell = status && !copy->told;
    if (status) {
        leave_file(copy);
        copy->leader = PROTO_NOBODY; // begin again
        copy->due = clock_seconds() + between_trials;
    }
    if (status || copy->size > 0)
        copy->told = status != STATUS_OK;
    if (tell)
        *err = why;
    return tell ? status : STATUS_OK;
}

int metrics_copy_open(struct metrics_copy **out, const char *folder, uint32_t id, struct gate *gate,
                      struct error *err) {
    struct metrics_copy *copy = mem_zeroed(1, sizeof *copy);
    if (!copy)
        return error_nomem(err);
    copy->folder = folder;
    copy->id = id;
    copy->gate = gate;
    copy->leader = PROTO_NOBODY;
    copy->fd = -1;
    *out = copy;
    return STATUS_OK;
}

void metrics_copy_close(struct metrics_copy *copy) {
    if (!copy)
        return;
    leave_file(copy);
    free(copy);
}

// --- before leading -----------------------------------------------------------------------------

int metrics_copy_adopt(const char *folder, uint32_t id, struct error *err) {
    char *path = metrics_path(folder), *copy = path_of(folder, id);
    int status = path && copy ? metrics_adopt(path, copy, err) : error_nomem(err);
    free(path);
    free(copy);
    return status;
}

// --- leading ------------------------------------------------------------------------------------

struct lines { // of the metrics, on their way
    struct link_part part;
    char bytes[ROOM];
};

// Whole lines of the file, from there on, as many as have room.
static void read_lines(struct lines *lines, int fd, uint64_t from) {
    ssize_t n = from <= INT64_MAX ? io_read_at(fd, lines->bytes, ROOM, (off_t)from) : 0;
    const char *end = n > 0 ? memrchr(lines->bytes, '\n', (size_t)n) : NULL;
    lines->part = (struct link_part){lines->bytes, end ? (size_t)(end - lines->bytes) + 1 : 0};
}

// Takes over the lines.
static void send_lines(const struct queued_request *queued, struct lines *lines, uint64_t size) {
    const struct proto_metrics answer = {.size = size};
    const struct link_payload payload = {
        .parts = &lines->part,
        .part_count = lines->part.size > 0,
        .sent = free,
        .context = lines,
    };
    if (link_answer(queued->link, queued->request, PROTO_TYPE_METRICS, &answer, &payload, NULL))
        link_refuse(queued->link, queued->request, PROTO_REFUSAL_BUSY, 0, "");
}

void metrics_copy_answer(const char *folder, const struct queued_request *queued) {
    char *path = metrics_path(folder);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    struct lines *lines = size < 0 ? NULL : malloc(sizeof *lines);
    if (lines) {
        read_lines(lines, fd, queued->message->message.get_metrics.from);
        send_lines(queued, lines, (uint64_t)size);
    } else {
        link_refuse(queued->link, queued->request, PROTO_REFUSAL_NOT_READY, 0,
                    "the metrics cannot be read");
    }
    if (fd >= 0)
        close(fd);
    free(path);
}
