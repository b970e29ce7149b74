#include "deal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/io.h"
#include "core/mem.h"
#include "store/textfile.h"

struct journal {
    char *path;
    struct journal_of of;
    pthread_mutex_t lock; // of all that follows
    int fd;
    off_t torn; // bytes of half a line at the end of the file
    _Atomic uint64_t lines;
    bool unsynced;
};

// --- reading ---------------------------------------------------------------------

struct reading {
    const char *path;
    const struct journal_of *of;
    struct journal_place *place;
    unsigned line;
    bool other_run;
};

static int line_error(const struct reading *reading, struct error *err) {
    return error_set(err, STATUS_DATA, "%s:%u: this is no journal of a data server", reading->path,
                     reading->line);
}

// All of `text` is so many decimal numbers, each behind one space.
static bool parse_numbers(const char *text, uint64_t *values, int count) {
    for (int i = 0; i < count; i++) {
        char *end;
        if (text[0] != ' ' || text[1] < '0' || text[1] > '9')
            return false;
        errno = 0;
        values[i] = strtoull(text + 1, &end, 10);
        if (errno)
            return false;
        text = end;
    }
    return *text == '\0';
}

static int read_identity_line(struct reading *reading, const char *text, struct error *err) {
    const struct journal_of *of = reading->of;
    char run[sizeof of->run];
    uint64_t part[4];
    int n = 0;
    if (sscanf(text, "of %32s%n", run, &n) != 1 || !parse_numbers(text + n, part, 4))
        return line_error(reading, err);
    uint64_t digest = part[0], samples = part[1], first = part[2], count = part[3];
    reading->other_run = strcmp(run, of->run) != 0;
    if (!reading->other_run && (digest != of->digest || samples != of->samples ||
                                first != of->first || count != of->count))
        return error_set(err, STATUS_DATA,
                         "%s: is of samples %" PRIu64 "..%" PRIu64 " of %" PRIu64
                         " (digest %08" PRIx64 "), not of %" PRIu32 "..%" PRIu64 " of %" PRIu64
                         " (%08" PRIx32 ")",
                         reading->path, first, first + count, samples, digest, of->first,
                         (uint64_t)of->first + of->count, of->samples, of->digest);
    return STATUS_OK;
}

static int read_epoch_line(struct reading *reading, const char *text, struct error *err) {
    uint64_t at[2];
    if (strncmp(text, "at", 2) != 0 || !parse_numbers(text + 2, at, 2) || at[1] > UINT32_MAX)
        return line_error(reading, err);
    reading->place->seed = at[0];
    reading->place->epoch = (uint32_t)at[1];
    return STATUS_OK;
}

static int read_done_line(struct reading *reading, const char *text, struct error *err) {
    struct journal_place *place = reading->place;
    uint64_t done[3];
    if (strncmp(text, "done", 4) != 0 || !parse_numbers(text + 4, done, 3) ||
        done[0] > UINT32_MAX || done[1] >= reading->of->count ||
        done[2] > reading->of->count - done[1])
        return line_error(reading, err);
    uint32_t epoch = (uint32_t)done[0];
    if (epoch < place->epoch)
        return STATUS_OK;
    if (epoch > place->epoch) {
        place->epoch = epoch;
        ranges_clear(&place->finished);
    }
    if (!ranges_reserve(&place->finished, place->finished.count + 1))
        return error_nomem(err);
    ranges_add(&place->finished, (struct range){(uint32_t)done[1], (uint32_t)done[2]});
    return STATUS_OK;
}

static int read_line(struct reading *reading, const char *text, struct error *err) {
    reading->line++;
    if (reading->line == 1)
        return strcmp(text, "adam-cursor 1") ? line_error(reading, err) : STATUS_OK;
    if (reading->line == 2)
        return read_identity_line(reading, text, err);
    return reading->line == 3 ? read_epoch_line(reading, text, err)
                              : read_done_line(reading, text, err);
}

// Whole lines only; *found when those that every journal has are there.
static int read_file(struct reading *reading, bool *found, struct error *err) {
    FILE *file = fopen(reading->path, "re");
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    *found = false;
    if (!file)
        return errno == ENOENT ? STATUS_OK : error_errno(err, STATUS_IO, "%s", reading->path);
    int status = io_line(file, reading->path, &line, &room, &n, err);
    while (!status && !reading->other_run && n > 0 && line[n - 1] == '\n') {
        line[n - 1] = '\0';
        status = read_line(reading, line, err);
        if (!status && strlen(line) != (size_t)n - 1)
            status = line_error(reading, err);
        if (!status)
            status = io_line(file, reading->path, &line, &room, &n, err);
    }
    *found = reading->line >= 3 && !reading->other_run;
    free(line);
    fclose(file);
    return status;
}

// --- writing ---------------------------------------------------------------------

static int write_text(const struct journal *journal, uint64_t seed, uint32_t epoch,
                      const struct range *finished, size_t count, struct error *err) {
    const struct journal_of *of = &journal->of;
    struct textfile *text;
    int status = textfile_open(&text, journal->path, err);
    if (status)
        return status;
    FILE *file = textfile_stream(text);
    fprintf(file, "adam-cursor 1\nof %s %" PRIu32 " %" PRIu64 " %" PRIu32 " %" PRIu32 "\n", of->run,
            of->digest, of->samples, of->first, of->count);
    fprintf(file, "at %" PRIu64 " %" PRIu32 "\n", seed, epoch);
    for (size_t i = 0; i < count; i++)
        fprintf(file, "done %" PRIu32 " %" PRIu32 " %" PRIu32 "\n", epoch, finished[i].first,
                finished[i].count);
    return textfile_close(text, err);
}

static int reopen_file(struct journal *journal, struct error *err) {
    int fd = open(journal->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, STATUS_IO, "%s", journal->path);
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = fd;
    journal->torn = 0;
    atomic_store(&journal->lines, 0);
    return STATUS_OK;
}

int journal_rewrite(struct journal *journal, journal_cursor *cursor, void *self,
                    struct error *err) {
    uint64_t seed;
    uint32_t epoch;
    size_t count;
    pthread_mutex_lock(&journal->lock);
    struct range *finished = cursor(self, &seed, &epoch, &count);
    int status =
        finished ? write_text(journal, seed, epoch, finished, count, err) : error_nomem(err);
    if (!status)
        status = reopen_file(journal, err);
    pthread_mutex_unlock(&journal->lock);
    free(finished);
    return status;
}

// Takes away half a line that a full disk left.
static bool remove_torn(struct journal *journal) {
    if (journal->torn == 0)
        return true;
    off_t end = lseek(journal->fd, 0, SEEK_END);
    if (end < journal->torn || ftruncate(journal->fd, end - journal->torn))
        return false;
    journal->torn = 0;
    return true;
}

static bool append_line(struct journal *journal, const char *line, ssize_t n) {
    ssize_t written = write(journal->fd, line, (size_t)n);
    if (written > 0 && written < n) {
        journal->torn = written;
        errno = ENOSPC;
    }
    return written == n;
}

int journal_add(struct journal *journal, uint32_t epoch, struct range done, struct error *err) {
    char line[64];
    int n = snprintf(line, sizeof line, "done %" PRIu32 " %" PRIu32 " %" PRIu32 "\n", epoch,
                     done.first, done.count);
    pthread_mutex_lock(&journal->lock);
    bool written = remove_torn(journal) && append_line(journal, line, n);
    int status = written ? STATUS_OK : error_errno(err, STATUS_IO, "%s", journal->path);
    journal->unsynced = true;
    pthread_mutex_unlock(&journal->lock);
    atomic_fetch_add(&journal->lines, 1);
    return status;
}

int journal_sync(struct journal *journal, struct error *err) {
    pthread_mutex_lock(&journal->lock);
    bool unsynced = journal->unsynced;
    journal->unsynced = false;
    int fd = unsynced ? dup(journal->fd) : -1;
    pthread_mutex_unlock(&journal->lock);
    if (!unsynced)
        return STATUS_OK;
    // Outside the lock: who finishes a lease does not wait for the disk.
    int status =
        fd < 0 || fdatasync(fd) ? error_errno(err, STATUS_IO, "%s", journal->path) : STATUS_OK;
    if (fd >= 0)
        close(fd);
    if (status) {
        pthread_mutex_lock(&journal->lock);
        journal->unsynced = true; // the next call tries again
        pthread_mutex_unlock(&journal->lock);
    }
    return status;
}

uint64_t journal_lines(const struct journal *journal) {
    return atomic_load(&journal->lines);
}

// --- beginning and end -----------------------------------------------------------

int journal_open(struct journal **out, const char *path, const struct journal_of *of,
                 struct journal_place *place, bool *found, struct error *err) {
    struct journal *journal = mem_zeroed(1, sizeof *journal);
    if (!journal)
        return error_nomem(err);
    pthread_mutex_init(&journal->lock, NULL);
    journal->fd = -1;
    journal->of = *of;
    journal->path = mem_string(path);
    *place = (struct journal_place){0};
    struct reading reading = {.path = path, .of = of, .place = place};
    int status = journal->path ? read_file(&reading, found, err) : error_nomem(err);
    if (status) {
        ranges_free(&place->finished);
        journal_close(journal);
    } else {
        *out = journal;
    }
    return status;
}

void journal_close(struct journal *journal) {
    if (!journal)
        return;
    if (journal->fd >= 0)
        close(journal->fd);
    pthread_mutex_destroy(&journal->lock);
    free(journal->path);
    free(journal);
}
