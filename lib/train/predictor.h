// A trained model that stays open for predictions of single pictures or a few.
//
// Any thread may call predictor_score at any time. Each call that is under way has a scorer of
// its own (train/scoring.h), which stays open for the next one: so the memory is that of the most
// calls at a time. Large pictures wait for each other, so that those that are decoded at a time
// have together at most PREDICTOR_PICTURES times as many pixels as one may have. A call for one
// sample that begins while no other is under way may be shared by several threads
// (model/net_team.h), so that its answer is there sooner.
#ifndef ADAM_TRAIN_PREDICTOR_H
#define ADAM_TRAIN_PREDICTOR_H

#include "core/error.h"
#include "train/scoring.h"

struct predictor;

#define PREDICTOR_PICTURES 4

// The caller keeps what `config` points to. `threads` share such a call; 1: nobody does. STATUS_IO:
// out of memory, or a thread cannot be started.
int predictor_open(struct predictor **out, const struct scoring_config *config, int threads,
                   struct error *err);
// No call may be under way.
void predictor_close(struct predictor *predictor);

// Samples of a pass at most.
int predictor_batch(const struct predictor *predictor);
// Of so many samples that wait, those that had better pass first (net_first); any thread may ask.
int predictor_first(struct predictor *predictor, int count);
// Floats of a sample, channels x height x width.
size_t predictor_values(const struct predictor *predictor);

// Passes through the net until now.
uint64_t predictor_passes(const struct predictor *predictor);

// One sample to be scored: an encoded picture of any codec (image/codec.h), or floats.
struct predictor_sample {
    const void *bytes;
    size_t size;
    const float *floats; // not NULL: predictor_values of them, as after all operations
    float *scores;       // one a class, written when the status is STATUS_OK
    int status;          // STATUS_DATA: it cannot be used; STATUS_IO: out of memory
    struct error why;    // when the status is not STATUS_OK
};

// Scores the samples in their order, in passes of predictor_first; each has its own status.
// STATUS_IO: out of memory before the first.
int predictor_score(struct predictor *predictor, struct predictor_sample *const *samples, int count,
                    struct error *err);

#endif
