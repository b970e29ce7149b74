// What partitions that are processes of one machine send each other forward (struct net_wire),
// through memory that they share: a piece is copied to its place there, and read where it lies.
//
// Each partition passes several mini-batches at a time, each in a lane with a thread of its own.
#ifndef ADAM_TRAIN_SHARED_POST_H
#define ADAM_TRAIN_SHARED_POST_H

#include "core/gate.h"
#include "model/cut.h"
#include "model/net.h"

struct error;

struct shared_post;

// Of mini-batches of at most `most` samples. Processes that are forked later have it, too; the cut
// must outlive it. STATUS_IO: out of memory.
int shared_post_open(struct shared_post **out, const struct cut *cut, int lanes, int most,
                     struct error *err);
void shared_post_close(struct shared_post *post);

// The wire of a partition for a lane. It is valid until the post is closed.
const struct net_wire *shared_post_wire(struct shared_post *post, int partition, int lane);
// Opened when something was sent to the partition in that lane, or read of what it sent.
struct gate *shared_post_gate(const struct shared_post *post, int partition, int lane);

#endif
