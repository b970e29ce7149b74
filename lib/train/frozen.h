// Training on what frozen layers give: each sample passes through them once, and in later epochs
// training begins above them. What they give is kept in memory, as far as it may be; of other
// samples it is computed anew each time, to the same bytes, as passes through them always have the
// same number of samples (model/border.h).
//
// Threads: a struct frozen_thread belongs to one; the rest any thread may call.
#ifndef ADAM_TRAIN_FROZEN_H
#define ADAM_TRAIN_FROZEN_H

#include "data/supply.h"
#include "model/model.h"

struct error;
struct kernels;
struct net;

struct frozen;

struct frozen_config { // what it points to outlives it
    const struct model *model;
    const struct kernels *kernels;
    uint32_t samples; // of the training set
    uint64_t memory;  // bytes for outputs, at most
};

// NULL where no layers are to be passed once: the model has no border. STATUS_IO: out of memory.
int frozen_open(struct frozen **out, const struct frozen_config *config, struct error *err);
void frozen_close(struct frozen *frozen);

// What is trained. Its parameters lie where those of the model do.
const struct model *frozen_above(const struct frozen *frozen);
// Whether the values of this sample are not needed any more; then they never are again.
bool frozen_knows(const struct frozen *frozen, uint32_t index);
// Samples that have passed through the frozen layers so far.
uint64_t frozen_passed(const struct frozen *frozen);

enum { FROZEN_TEXT = 256 };
// "all layers up to 'p2' are frozen: each sample passes them once, and what they give is kept (4.1
// MiB)"; with `changes`, why they are passed in each epoch.
void frozen_text(char text[FROZEN_TEXT], const struct frozen *frozen, const char *changes);

// What one thread needs. {0} is not open, and can be closed.
struct frozen_thread {
    struct frozen *frozen;
    struct net *net;
    int pass;              // samples of each pass
    float *input, *passed; // of a pass
    float *outputs;        // of a mini-batch
    int *missing;          // samples of a mini-batch that are to be passed
};

// For at most `most` samples at a time. STATUS_IO: out of memory.
int frozen_thread_open(struct frozen_thread *thread, struct frozen *frozen, int most,
                       struct error *err);
void frozen_thread_close(struct frozen_thread *thread);
// Of samples [first, first + n) of the mini-batch, one behind the other, by these weights. Valid
// until the next call.
float *frozen_outputs(struct frozen_thread *thread, const float *weights, const struct batch *batch,
                      int first, int n);

#endif
