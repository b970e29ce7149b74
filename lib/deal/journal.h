// How far a data server is, in a file that survives its sudden end: lines are appended,
// each by one write, as leases are finished, and read when it is started again. Now and
// then the file is written anew, with what the lines have come to (store/textfile.h).
//
//   adam-cursor 1
//   of RUN DIGEST SAMPLES FIRST COUNT   the run, the data set, and the part of it
//   at SEED EPOCH                       of the order; what was finished before is over
//   done EPOCH FIRST COUNT              places that are finished
//
// An end in the middle of a line is an end before it. Lines that have reached the kernel
// survive the process; journal_sync makes them survive the machine.
//
// Threads: any thread may add and rewrite; the others belong to one.
#ifndef ADAM_DEAL_JOURNAL_H
#define ADAM_DEAL_JOURNAL_H

#include "deal/ranges.h"

struct error;

struct journal;

struct journal_of { // what it is a journal of
    char run[33];   // in hexadecimal digits
    uint32_t digest;
    uint64_t samples; // of the whole data set
    uint32_t first, count;
};

struct journal_place {
    uint64_t seed;
    uint32_t epoch;
    struct ranges finished; // the caller's, for ranges_free
};

// Reads what is there, if anything, into *place: *found is false when there is no file, or
// one of another run. STATUS_DATA when it is no journal, or one of other data; STATUS_IO.
int journal_open(struct journal **out, const char *path, const struct journal_of *of,
                 struct journal_place *place, bool *found, struct error *err);
// Writes the file anew, with what `cursor` returns: finished ranges, for free(), or NULL
// when out of memory. Meanwhile nothing is added, so that all is in it that was finished
// before it was added. STATUS_IO, STATUS_CANTCREATE.
typedef struct range *journal_cursor(void *self, uint64_t *seed, uint32_t *epoch, size_t *count);
int journal_rewrite(struct journal *journal, journal_cursor *cursor, void *self, struct error *err);
// STATUS_IO: this line is not in it; others may be added.
int journal_add(struct journal *journal, uint32_t epoch, struct range done, struct error *err);
int journal_sync(struct journal *journal, struct error *err);
// Lines added since it was written anew.
uint64_t journal_lines(const struct journal *journal);
void journal_close(struct journal *journal);

#endif
