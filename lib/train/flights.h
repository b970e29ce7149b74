// Mini-batches that partitions of one model pass together (model/cut.h), several of them at a time:
// "we allow threads to process multiple images in parallel" (Adam 3.2.5). Each thread of the loop
// is a partition, and goes on with the oldest of the flights that has what it needs. Inside
// lib/train/ only.
//
// Thread 0 takes mini-batches and announces them; when all partitions are done with one, it has
// landed. Where other processes have the other partitions (train/neighbours.h), each has one
// thread, which hears of mini-batches from the first one's. Asynchronous flights are mini-batches
// of their own, each of whose gradients is added as soon as it is there. A synchronous mini-batch
// is cut into as many parts, in flight together, whose gradients are one update.
#ifndef ADAM_TRAIN_FLIGHTS_H
#define ADAM_TRAIN_FLIGHTS_H

#include <stdatomic.h>

#include "model/cut.h"
#include "train/loop_threads.h"
#include "train/neighbours.h"
#include "train/post.h"
#include "train/sums.h"

// A mini-batch in the air. Of thread 0 until it is announced, and when it has landed.
struct flight {
    struct batch *batch; // NULL: there is none
    uint64_t number;     // 0, 1, 2...
    float rate;
    int32_t *other; // where samples are mixed (train/mix.h)
    float *share;
    double *losses;      // of each thread's partition
    atomic_bool refused; // by any of the threads: something was not finite
    _Atomic int left;    // threads that are not done
};

struct flights {
    const struct cut *cut;
    const struct neighbours *neighbours; // NULL: all partitions are here
    int first, local;                    // partition of thread 0; threads
    struct post *post;
    int count, chunks; // in the air at a time; parts of each, each with a net of its own
    int most;          // samples that a net passes at a time
    struct flight *flight;
    _Atomic uint64_t announced; // flights so far
    _Atomic int inside;         // threads that are in the round, but for the first
    atomic_bool over;           // no other follows in this round
};

// What one partition has of a flight: a part of the mini-batch, in passes of so many samples.
enum chunk_phase { CHUNK_FORWARD, CHUNK_BACKWARD, CHUNK_DONE };
struct leg;
struct chunk {
    struct leg *leg;
    struct net *net;
    float *gradient;
    int first, n; // samples of the mini-batch
    int at, some; // of these, those in hand
    enum chunk_phase phase;
};

enum leg_phase { LEG_WAITS, LEG_PASSES, LEG_SUMS };
struct leg { // of one partition and one place for flights
    struct loop_thread *thread;
    struct flight *flight;
    uint64_t number; // of the flight that it is in, or waits for
    struct chunk *chunks;
    enum leg_phase phase;
    struct sums sums;
    size_t gradients; // floats of the sums that are gradients; behind them are the squares of each
                      // whole layer's, and how many partitions have refused theirs
    bool refused;
};

// All threads look anew.
void flights_wake(const struct flights *flights);
// Opened when there may be something for a thread to go on with.
struct gate *flights_gate(const struct flights *flights, int thread);
// What carries the pieces of a thread's passes in one place.
const struct net_wire *flights_wire(const struct flights *flights, int thread, int place);

// Samples of each part of a mini-batch of n, but the last ones: as equal as can be, and as many as
// a layer looks at together.
int flights_each(const struct flights *flights, const struct model *model, int n);

// STATUS_IO: out of memory. The cut is the configuration's.
int flights_open(struct flights **out, const struct loop_config *config, struct error *err);
void flights_close(struct flights *flights);

// The legs of a thread, one for each flight in the air. STATUS_IO: out of memory.
int legs_open(struct leg **out, struct loop_thread *thread, struct error *err);
void legs_close(struct leg *legs, const struct flights *flights);

// Goes on with a leg as far as it can. True: something came to its end, or began.
bool leg_go(struct leg *leg);

#endif
