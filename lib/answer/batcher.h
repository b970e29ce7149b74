// Requests that share passes: samples of requests that come while a thread computes go through
// the model together, after its pass, or by another thread when they have waited for a moment.
//
// Threads: batcher_put may be called by any; `open` and `done` of a request by a thread of the
// batcher, one after the other.
#ifndef ADAM_ANSWER_BATCHER_H
#define ADAM_ANSWER_BATCHER_H

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
    double since;
    struct ask *next;
};

// `window`: seconds that a sample waits at most for a pass, if a thread is free. STATUS_IO: out of
// memory, or no thread could be started.
int batcher_open(struct batcher **out, struct predictor *predictor, int threads, double window,
                 struct error *err);
void batcher_put(struct batcher *batcher, struct ask *ask);
// Waits until all requests are done.
void batcher_close(struct batcher *batcher);

#endif
