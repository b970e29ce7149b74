// A mini-batch of one thread: forward, loss, backward. Each layer's gradient goes to the home
// of the weights as soon as it is complete, while the backward pass continues below.
// Asynchronous training repeats this (train/loop.h), and measurements time it.
//
// A solo belongs to one thread. What its home says about threads applies.
#ifndef ADAM_TRAIN_SOLO_H
#define ADAM_TRAIN_SOLO_H

#include <stdatomic.h>
#include <stdbool.h>

#include "data/supply.h"
#include "model/net.h"
#include "train/home.h"

// The caller fills in all members but the last two, and owns what they point to.
struct solo {
    const struct kernels *kernels;
    const struct optimizer *optimizer;
    struct home *home;
    int thread; // number of the thread in the home
    struct net *net;
    float *gradient;            // scratch: parameter_count floats
    uint64_t seed;              // of dropout
    const atomic_bool *stopped; // once true, the home gets nothing more; may be NULL
    net_ready *added;           // called when the home has a layer's gradient; may be NULL
    void *added_self;
    // Private: of the present mini-batch.
    float rate;
    bool refused;
};

// The number of samples for which to open the net of a solo. A larger mini-batch is passed
// in parts, unless the home's threads pass whole mini-batches together.
int solo_part(const struct home *home, const struct model *model, const struct kernels *kernels,
              int batch);

// Call once the net is open. Where `threads` threads share weights, each begins at a
// different place in large layers (net_set_thread).
void solo_set_thread(const struct solo *solo, int threads);

// Trains on `batch` at learning rate `rate`. *loss is the sum over the samples, before the
// update. False: the solo was stopped; or the loss or a gradient was not finite, then *loss
// is not finite either, and the home did not get that gradient.
bool solo_train(struct solo *solo, const struct batch *batch, float rate, double *loss);
// Removes the thread from its home's group until it trains again. Call before blocking.
void solo_leave(const struct solo *solo);

#endif
