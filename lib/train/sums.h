// Sums over partitions: each adds floats of its own to those of all others and gets the totals, in
// one order, so that all have the same ones. Partition q adds up the q-th part of them for all.
// "Passes" are steps that wait for nobody (model/net.h, net_wire): a thread goes on with others
// meanwhile.
#ifndef ADAM_TRAIN_SUMS_H
#define ADAM_TRAIN_SUMS_H

#include "model/net.h"

struct error;
struct kernels;

struct sums {
    const struct kernels *kernels;
    const struct net_wire *wire;
    int exchange; // its number on the wire
    int partition, partitions;
    size_t count;
    float *floats; // count of them: what is to be added up, then the totals
    float *part;   // the totals that others read
    int step;
};

// For `count` floats. STATUS_IO: out of memory.
int sums_open(struct sums *sums, const struct net_wire *wire, int exchange, int partition,
              int partitions, size_t count, const struct kernels *kernels, struct error *err);
void sums_close(struct sums *sums);

// Whether all others have read what was sent last, so that it may begin.
bool sums_idle(const struct sums *sums);
// Begins to add up sums->floats.
void sums_begin(struct sums *sums);
// False: it waits. Else sums->floats are the totals.
bool sums_go(struct sums *sums);

#endif
