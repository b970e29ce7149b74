// An ordered, bounded, parallel map: one thread reads, several work, and the
// caller's thread writes in the order of reading. The jobs in flight are the
// caller's slots, so memory is bounded and a slow writer holds up the reader
// (back-pressure). The result does not depend on the number of threads.
#ifndef ADAM_CORE_PIPELINE_H
#define ADAM_CORE_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>

struct error;

struct pipeline {
    int threads; // that work; at least 1
    void *slots; // slot_count pieces of slot_size bytes, the caller's; used in turn
    size_t slot_size;
    int slot_count; // at least 1; twice the threads keeps them all busy
    void *context;  // handed to all functions

    // Fills a slot, or says *more = false. Called by one thread only, in order.
    int (*read)(void *context, void *slot, bool *more, struct error *err);
    // Works on a slot; `thread` is 0..threads-1, for scratch of its own.
    int (*work)(void *context, int thread, void *slot, struct error *err);
    // Takes the results, in the order of reading, on the thread of the caller.
    int (*write)(void *context, void *slot, struct error *err);
    // May be NULL. Asked several times a second; true ends the run.
    bool (*stopped)(void);
};

// Runs until everything is written, or until the first error in the order of
// reading: all that was read before it is written, nothing behind it. Returns
// its status, or STATUS_STOPPED. No thread is left when it returns, so it waits
// for a read that is under way.
int pipeline_run(const struct pipeline *pipeline, struct error *err);

#endif
