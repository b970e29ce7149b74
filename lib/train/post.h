// What the partitions of one process send each other (struct net_wire): pieces go by pointer, from
// where their sender has put them. A partition may have several mini-batches in flight, each in a
// slot of its own.
//
// Threads: each partition belongs to one.
#ifndef ADAM_TRAIN_POST_H
#define ADAM_TRAIN_POST_H

#include "core/gate.h"
#include "model/net.h"

struct error;

struct post;

// Exchanges have numbers below `exchanges`. STATUS_IO: out of memory.
int post_open(struct post **out, int partitions, int slots, int exchanges, struct error *err);
void post_close(struct post *post);

// The wire of a partition for a slot. It is valid until the post is closed.
const struct net_wire *post_wire(struct post *post, int partition, int slot);
// Opened when something was sent to the partition, or read of what it sent.
struct gate *post_gate(struct post *post, int partition);

#endif
