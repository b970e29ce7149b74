#include "data/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/mem.h"
#include "store/textfile.h"

struct journal {
    char *path;
    struct journal_of of;
    pthread_mutex_t lock; // of all that follows
    int fd;
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

static int bad_line(const struct reading *reading, struct error *err) {
    return error_set(err, STATUS_DATA, "%s:%u: this is no journal of a data server", reading->path,
                     reading->line);
}

static int read_of(struct reading *reading, const char *text, struct error *err) {
    struct journal_of was = {0};
    const struct journal_of *of = reading->of;
    if (sscanf(text, "of %32s %" SCNu32 " %" SCNu64 " %" SCNu32 " %" SCNu32, was.run, &was.digest,
               &was.samples, &was.first, &was.count) != 5)
        return bad_line(reading, err);
    reading->other_run = strcmp(was.run, of->run) != 0;
    if (!reading->other_run && (was.digest != of->digest || was.samples != of->samples ||
                                was.first != of->first || was.count != of->count))
        return error_set(
            err, STATUS_DATA,
            "%s: is of samples %" PRIu32 "..%" PRIu64 " of %" PRIu64 " (digest %08" PRIx32
            "), not of %" PRIu32 "..%" PRIu64 " of %" PRIu64 " (%08" PRIx32 ")",
            reading->path, was.first, (uint64_t)was.first + was.count, was.samples, was.digest,
            of->first, (uint64_t)of->first + of->count, of->samples, of->digest);
    return STATUS_OK;
}

static int read_done(struct reading *reading, const char *text, struct error *err) {
    struct journal_place *place = reading->place;
    struct range done;
    uint32_t epoch;
    if (sscanf(text, "done %" SCNu32 " %" SCNu32 " %" SCNu32, &epoch, &done.first, &done.count) !=
            3 ||
        done.first >= reading->of->count || done.count > reading->of->count - done.first)
        return bad_line(reading, err);
    if (epoch < place->epoch)
        return STATUS_OK;
    if (epoch > place->epoch) {
        place->epoch = epoch;
        ranges_clear(&place->finished);
    }
    if (!ranges_reserve(&place->finished, place->finished.count + 1))
        return error_nomem(err);
    ranges_add(&place->finished, done);
    return STATUS_OK;
}

static int read_line(struct reading *reading, const char *text, struct error *err) {
    struct journal_place *place = reading->place;
    reading->line++;
    if (reading->line == 1)
        return strcmp(text, "adam-cursor 1") ? bad_line(reading, err) : STATUS_OK;
    if (reading->line == 2)
        return read_of(reading, text, err);
    if (reading->line > 3)
        return read_done(reading, text, err);
    return sscanf(text, "at %" SCNu64 " %" SCNu32, &place->seed, &place->epoch) == 2
               ? STATUS_OK
               : bad_line(reading, err);
}

// Whole lines only; *found when those that every journal has are there.
static int read_file(struct reading *reading, bool *found, struct error *err) {
    FILE *file = fopen(reading->path, "re");
    char *line = NULL;
    size_t room = 0;
    int status = STATUS_OK;
    ssize_t n;
    *found = false;
    if (!file)
        return errno == ENOENT ? STATUS_OK : error_errno(err, STATUS_IO, "%s", reading->path);
    while (!status && !reading->other_run && (n = getline(&line, &room, file)) > 0 &&
           line[n - 1] == '\n') {
        line[n - 1] = '\0';
        status = read_line(reading, line, err);
    }
    if (!status && ferror(file))
        status = error_errno(err, STATUS_IO, "%s", reading->path);
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

static int reopen(struct journal *journal, struct error *err) {
    int fd = open(journal->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, STATUS_IO, "%s", journal->path);
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = fd;
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
        status = reopen(journal, err);
    pthread_mutex_unlock(&journal->lock);
    free(finished);
    return status;
}

int journal_add(struct journal *journal, uint32_t epoch, struct range done, struct error *err) {
    char line[64];
    int n = snprintf(line, sizeof line, "done %" PRIu32 " %" PRIu32 " %" PRIu32 "\n", epoch,
                     done.first, done.count);
    pthread_mutex_lock(&journal->lock);
    errno = ENOSPC; // of a write that is cut short
    bool written = write(journal->fd, line, (size_t)n) == n;
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
