// How long the steps of a worker may be, which sees the others' steps late.
//
// While a worker trains, the others move the weights by D. To first order that changes its gradient
// g by H D, H being the curvature of the loss. For mini-batches of b samples b g^2 is an estimate
// of H's diagonal (as in delay compensation, Zheng et al. 2017). So of a step that points where the
// others have gone, a share of b |g D| is too much: the worker would not have taken it, had it seen
// D. Each exchange measures the mean of this share, weighted by the squares of the steps. At low
// rates it is next to nothing, and the steps are as long as those of one process; it grows towards
// the highest rates at which one process learns, where the sum of all workers' steps is too long.
// Until enough is measured, steps are divided by the root of the number of workers.
#ifndef ADAM_REMOTE_DELTA_STEPS_H
#define ADAM_REMOTE_DELTA_STEPS_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"
#include "rule/optimizer.h"

struct delta_steps { // {0}: nothing is known
    double excess;   // the mean share of steps that is too much
    uint64_t measures;
};

// What was done since the last exchange, over all parameters. Threads may train on `weights`
// meanwhile (HOGWILD).
struct delta_view {
    const struct model *model;
    const struct optimizer *optimizer;
    int batch;                          // samples of a mini-batch
    float rate;                         // of the steps
    const float *weights, *base, *news; // see home_delta_exchange.c
    const float *squares;               // of an adaptive rule: its roots divide steps; or NULL
};

// Takes in what the view shows. By one thread.
void delta_steps_measure(struct delta_steps *steps, const struct delta_view *view);

// What the rate is to be multiplied with, from 1 / sharers to 1.
float delta_steps_length(const struct delta_steps *steps, size_t sharers);

#endif
