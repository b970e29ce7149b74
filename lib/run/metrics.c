#include "run/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "store/output.h"

enum { METRICS_VERSION = 1 };

struct metrics {
    int fd;
    char *path, *role;
    int rank;
    bool failing; // the last write failed and was reported
    bool shared;  // others may write lines behind ours
    bool torn;    // a line was written in part: end it before the next
    pthread_mutex_t lock;
};

// Whether the file ends within a line: an earlier run died while writing it.
static bool ends_within_line(int fd) {
    char last = '\n';
    off_t size = lseek(fd, 0, SEEK_END);
    return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

// Where the last whole line ends.
static off_t end_of_lines(int fd) {
    char bytes[4096];
    off_t end = lseek(fd, 0, SEEK_END);
    while (end > 0) {
        off_t from = end > (off_t)sizeof bytes ? end - (off_t)sizeof bytes : 0;
        ssize_t n = pread(fd, bytes, (size_t)(end - from), from);
        const char *last = n > 0 ? memrchr(bytes, '\n', (size_t)n) : NULL;
        if (n <= 0 || last)
            return n <= 0 ? -1 : from + (last - bytes) + 1;
        end = from;
    }
    return end;
}

// A part of a line is removed: no reader takes the file for what it should be with one in its
// middle. Where others write, too, it stays.
static void drop_part(struct metrics *metrics) {
    off_t end = metrics->torn && !metrics->shared ? end_of_lines(metrics->fd) : -1;
    if (end >= 0 && !ftruncate(metrics->fd, end))
        metrics->torn = false;
}

int metrics_open(struct metrics **out, const char *path, const char *role, int rank, bool shared,
                 struct error *err) {
    struct metrics *metrics = mem_zeroed(1, sizeof *metrics);
    if (!metrics)
        return error_nomem(err);
    pthread_mutex_init(&metrics->lock, NULL);
    metrics->rank = rank;
    metrics->shared = shared;
    metrics->path = mem_string(path);
    metrics->role = mem_string(role);
    metrics->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    int status = STATUS_OK;
    if (metrics->fd < 0)
        status = error_errno(err, STATUS_CANTCREATE, "%s", path);
    else if (!metrics->path || !metrics->role)
        status = error_nomem(err);
    else if (flock(metrics->fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) && errno == EWOULDBLOCK)
        status = error_set(err, STATUS_CANTCREATE, "%s: another process is writing it", path);
    if (status) {
        metrics_close(metrics);
        return status;
    }
    metrics->torn = ends_within_line(metrics->fd);
    drop_part(metrics);
    *out = metrics;
    return STATUS_OK;
}

// Adds the name of this machine.
static void add_host(json_t *line) {
    char host[256] = "";
    if (gethostname(host, sizeof host - 1))
        return;
    json_object_set_new(line, "host", json_string(host)); // none where that is no UTF-8
}

char *metrics_line(const char *role, int rank, const char *event, json_t *fields) {
    json_t *line = json_pack("{s:i, s:f, s:s, s:i, s:s}", "v", METRICS_VERSION, "t", clock_wall(),
                             "role", role, "rank", rank, "event", event);
    char *text = NULL;
    if (line && !strcmp(event, "start"))
        add_host(line);
    if (line && !json_object_update(line, fields))
        text = json_dumps(line, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(13));
    json_decref(line);
    json_decref(fields);
    return text;
}

// One writev(2) a line: it goes to the file at once, and whole unless the disk is full.
static bool write_line(struct metrics *metrics, const char *text) {
    size_t size = strlen(text) + 1;
    const struct iovec parts[] = {{(char *)text, size - 1}, {"\n", 1}};
    errno = 0;
    ssize_t n = writev(metrics->fd, parts, 2);
    metrics->torn = n > 0 ? (size_t)n < size : metrics->torn;
    if (n >= 0 && (size_t)n < size) {
        drop_part(metrics);
        errno = ENOSPC;
    }
    return n == (ssize_t)size;
}

int metrics_put(struct metrics *metrics, const char *line, struct error *err) {
    pthread_mutex_lock(&metrics->lock);
    bool written = (!metrics->torn || write_line(metrics, "")) && write_line(metrics, line);
    bool report = !written && !metrics->failing;
    metrics->failing = !written;
    if (report)
        error_errno(err, STATUS_IO, "%s", metrics->path);
    pthread_mutex_unlock(&metrics->lock);
    return report ? STATUS_IO : STATUS_OK;
}

int metrics_write(struct metrics *metrics, const char *event, json_t *fields, struct error *err) {
    char *text = metrics_line(metrics->role, metrics->rank, event, fields);
    int status = text ? metrics_put(metrics, text, err) : error_nomem(err);
    free(text);
    return status;
}

void metrics_close(struct metrics *metrics) {
    if (!metrics)
        return;
    if (metrics->fd >= 0)
        close(metrics->fd);
    pthread_mutex_destroy(&metrics->lock);
    free(metrics->path);
    free(metrics->role);
    free(metrics);
}

// --- copies -------------------------------------------------------------------------------------

// Whether a file begins with all of the other. One that is not there begins with nothing.
static bool begins_with(int file, int other) {
    char a[4096], b[sizeof a];
    for (off_t at = 0;;) {
        ssize_t n = pread(other, b, sizeof b, at);
        if (n <= 0)
            return n == 0;
        if (file < 0 || pread(file, a, (size_t)n, at) != n || memcmp(a, b, (size_t)n) != 0)
            return false;
        at += n;
    }
}

static int copy_file(int from, const char *path, struct error *err) {
    char bytes[4096];
    struct output *output = NULL;
    int status = output_open(&output, path, true, err);
    ssize_t n = 0;
    for (off_t at = 0; !status && (n = pread(from, bytes, sizeof bytes, at)) > 0; at += n)
        status = output_write(output, bytes, (size_t)n, err);
    if (!status && n < 0)
        status = error_errno(err, STATUS_IO, "the copy of %s", path);
    if (!status)
        return output_close(output, err);
    output_abort(output);
    return status;
}

int metrics_adopt(const char *path, const char *copy, struct error *err) {
    int own = open(path, O_RDONLY | O_CLOEXEC), other = open(copy, O_RDONLY | O_CLOEXEC);
    int status = STATUS_OK;
    if (other < 0 && errno != ENOENT)
        status = error_errno(err, STATUS_IO, "%s", copy);
    else if (other >= 0 && !begins_with(own, other))
        status = copy_file(other, path, err);
    if (own >= 0)
        close(own);
    if (other >= 0)
        close(other);
    return status;
}
