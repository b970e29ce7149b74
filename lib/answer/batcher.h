// Requests that share passes: a thread that is free takes what there is, as much as had better pass
// at once (predictor_first), and samples of requests that come while all compute go through the
// model together.
//
// Threads: batcher_put may be called by any. `open` and `done` of a request are called one after
// the other by a thread of the batcher; of a batcher without threads by who calls batcher_work.
#ifndef ADAM_ANSWER_BATCHER_H
#define ADAM_ANSWER_BATCHER_H

#include <stdbool.h>

#include "train/predictor.h"

struct error;

struct batcher;

// One request. The caller keeps it until `done`, and may free it there.
struct ask {
    // Finds the samples: sets them and their count. False: there are none, `done` follows.
    bool (*open)(struct ask *ask);
    // All samples have their scores, or status.
    void (*done)(struct ask *ask);
    struct predictor_sample *samples;
    int count;
    // The batcher's own.
    int taken, left; // samples: by threads, and those without an answer
    struct ask *next;
};

// Told by the thread that has done requests, of all that were in a pass at once.
typedef void batcher_told(void *self);

// `threads`: of its own, or 0. `told` may be NULL. STATUS_IO: out of memory, or no thread could be
// started.
int batcher_open(struct batcher **out, struct predictor *predictor, int threads, batcher_told *told,
                 void *self, struct error *err);
void batcher_put(struct batcher *batcher, struct ask *ask);
// For a batcher without threads, by one thread at a time: finds the samples of all requests, and
// passes once, if there are any. Whether samples wait for more passes.
bool batcher_work(struct batcher *batcher);
// Returns when all requests are done.
void batcher_close(struct batcher *batcher);

#endif
