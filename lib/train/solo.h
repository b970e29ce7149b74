// A mini-batch by one thread on its own: forward, loss, backward, and each layer's
// gradient to the home of the weights as soon as the backward pass has it, while that
// goes on below. Asynchronous training repeats it (train/loop.h), and measurements time it.
//
// Belongs to one thread; what its home says of threads holds.
#ifndef ADAM_TRAIN_SOLO_H
#define ADAM_TRAIN_SOLO_H

#include <stdatomic.h>
#include <stdbool.h>

#include "data/supply.h"
#include "model/net.h"
#include "train/home.h"

struct solo {
    const struct kernels *kernels;
    const struct optimizer *optimizer;
    struct home *home;
    int thread; // of the home
    struct net *net;
    float *gradient;            // room for parameter_count floats
    uint64_t seed;              // of what dropout drops
    const atomic_bool *stopped; // nothing goes to the home once it is true; may be NULL
    net_ready *added;           // told when the home has a layer's gradient; may be NULL
    void *added_self;
    // Its own, of the mini-batch in hand.
    float rate;
    bool refused;
};

// The samples that the net of a solo should be opened for: it passes mini-batches of more in
// parts, unless threads of this home pass them together.
int solo_part(const struct home *home, const struct model *model, const struct kernels *kernels,
              int batch);

// One of so many threads of its home: where they share weights, each begins elsewhere (net_seated).
void solo_seated(const struct solo *solo, int threads);

// Trains at this learning rate. False when the loss was not finite, or a gradient, which
// the home did not get then (*loss is NAN), or when it was stopped. *loss is the sum over
// the samples before the update.
bool solo_train(struct solo *solo, const struct batch *batch, float rate, double *loss);
// No thread of the home waits for this one until it trains again.
void solo_leave(const struct solo *solo);

#endif
