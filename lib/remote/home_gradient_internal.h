// What the parts of the home of gradients share. Inside lib/remote only.
//
//   home_gradient.c       what the loop sees of it; beginning and end
//   home_gradient_step.c  steps: pulls, mini-batches that go together, pushes
#ifndef ADAM_REMOTE_HOME_GRADIENT_INTERNAL_H
#define ADAM_REMOTE_HOME_GRADIENT_INTERNAL_H

#include <stdatomic.h>

#include "kernels/dense.h"
#include "remote/home_servers_internal.h"

enum pulling {
    PULL_LATER, // at the end of a later step
    PULL_DUE,   // at the end of this one
    PULL_ASKED, // the same, and it is under way
};

// A dense layer that pushes factors.
struct layer_factors {
    const struct layer *layer;
    float *errors[2], *inputs[2]; // as the gradients: filled, and on their way
    size_t room[2];               // samples
    struct dense_errors product;  // on its way
    struct exchange *push;
};

// Mini-batches that go in one push, as far as they are trained on.
struct push_group {
    uint64_t every, batches; // that it has in the end, and now
    int samples;
    double rate;                // sum
    struct shard_stamp *stamps; // of the weights of the first one
    float *rates;               // of each sample, where layers push factors
    size_t room;                // samples of `rates`
};

struct gradient {
    struct home_servers common;
    struct push_group group;
    bool *taken; // of each layer: whether it pushes factors
    struct layer_factors *factors;
    int factor_count;
    float *weights[2], *gradient[2];
    struct shard_stamp *stamps[2]; // of `weights`
    int here, there, filled;       // which weights are in use and which are pulled into, which
                                   // gradient is being filled
    int gradients;                 // that there are
    struct exchange *push, *pull;
    atomic_bool hurry;           // push what there is when no samples come
    struct exchange *turn;       // of all parameters: who has no samples takes his turn by one push
    bool idle;                   // the push on its way is such
    bool pushing;                // there is a push whose end was not waited for
    uint64_t mark, next_pull;    // of that push; the clock at which weights are pulled
    atomic_int pulling;          // enum pulling
    _Atomic double pull_at;      // seconds: not before
    double asked, begun;         // when it was started; when this step began
    double step_mean, pull_mean; // seconds
    _Atomic uint64_t clock;
};

static inline bool gradient_is_hardsync(const struct home_servers_config *config) {
    return config->protocol->kind == PROTOCOL_HARDSYNC;
}

static inline bool gradient_overlaps(const struct home_servers_config *config) {
    return config->overlap && !gradient_is_hardsync(config);
}

// home_gradient_step.c

// The threads look in each time that they begin a chunk of the mini-batch.
void gradient_pull_when_due(struct gradient *gradient);
// The share of the mini-batch in hand in the mean of those of the group.
float gradient_batch_share(const struct push_group *group, float rate);
// With room for the factors of its samples. STATUS_IO: there is none.
int gradient_begin_group(struct gradient *gradient, struct error *err);
// As struct home_servers wants them.
void gradient_step(struct home_servers *home, int samples, float rate);
int gradient_begin(struct home_servers *home, struct error *err);
int gradient_flush(struct home_servers *home, struct error *err);
uint64_t gradient_every(struct home_servers *home);

#endif
