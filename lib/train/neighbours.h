// Partitions of a model that other processes have (model/cut.h), as the training loop of one that
// has a partition sees them. The first one has the samples, and tells the others of mini-batches.
//
// Threads: the loop's calls all of it.
#ifndef ADAM_TRAIN_NEIGHBOURS_H
#define ADAM_TRAIN_NEIGHBOURS_H

#include "data/supply.h"
#include "model/net.h"

struct gate;

struct neighbours {
    void *self;
    int partition;     // that this process has
    struct gate *gate; // opened when anything came of them, or one is lost
    // What carries pieces of the passes in one place, of those in flight.
    const struct net_wire *(*wire)(void *self, int place);
    // By the first: they pass this mini-batch next, and it stays as it is until they have landed.
    // Of n = 0 they take the turn without samples. Numbers are 0, 1, 2...
    void (*tell)(void *self, uint64_t number, const struct batch *batch, float rate);
    // True: they have, with this loss, all of them, beside its own; *refused: something was not
    // finite.
    bool (*landed)(void *self, uint64_t number, double *loss, bool *refused);
    // By the others: the mini-batch of that number, without its inputs; NULL: not yet. It is valid
    // until it is given back.
    struct batch *(*hear)(void *self, uint64_t number, float *rate);
    void (*give_back)(void *self, struct batch *batch, double loss, bool refused);
    // Instead, of one that this partition is not done with: the first hears nothing of it.
    void (*forget)(void *self, struct batch *batch);
    // Nothing comes any more of one of them: what is in flight never lands.
    bool (*lost)(void *self);
};

#endif
