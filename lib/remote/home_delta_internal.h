// What the parts of the home of deltas share. Inside lib/remote only.
//
//   home_delta.c           what the loop and the owner see of it
//   home_delta_exchange.c  the thread that exchanges
//   home_delta_pace.c      when it does
#ifndef ADAM_REMOTE_HOME_DELTA_INTERNAL_H
#define ADAM_REMOTE_HOME_DELTA_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/gate.h"
#include "remote/delta_factors.h"
#include "remote/delta_steps.h"
#include "remote/home_servers_internal.h"

struct delta {
    struct home_servers common;
    struct home *local; // of the weights in use, for the threads
    float *weights, *state, *base, *moved;
    bool arrived; // `moved` is of a pull, and not in `weights` and `base` yet
    // Of `base` with what was pulled; 0 where it is not what the servers have.
    struct shard_stamp *stamps;
    struct growth growth;
    struct delta_factors *factors; // NULL: everything goes as it is
    atomic_bool keeps;             // products that are pushed then
    atomic_bool behind;            // a push was too stale: those that follow would be until a pull
    struct exchange *push, *pull;
    pthread_t thread; // that exchanges
    bool started;
    struct gate wanted;       // something for it to do
    struct gate over;         // a turn of it is
    _Atomic uint64_t samples; // of the mini-batches that the threads have added, and maybe more
    _Atomic uint64_t clock;   // these mini-batches
    _Atomic uint64_t due;     // the clock at which there is something to exchange
    _Atomic uint64_t settled; // the clock as of which both ways were exchanged
    _Atomic uint64_t flushes, flushed;
    atomic_bool hurry, closing;
    // The clock up to which that was begun. Changed by the exchanging thread.
    _Atomic uint64_t pushed, pulled;
    _Atomic float rate;   // of the threads' steps; written when it changes, as all threads read it
    _Atomic float length; // of those steps, beside what the schedule says: see delta_steps.h
    // The exchanging thread's own.
    int unsure;       // pushes with factors since all weights were pulled
    uint64_t counted; // samples of all pushes
    struct delta_steps steps;
};

// home_delta_exchange.c

// Waits for the servers' weights, which are in `moved` then. False: the home has failed.
bool delta_fetch(struct delta *delta);
// Takes the products that were kept since the last push; false: there are none that go as factors.
bool delta_take_factors(struct delta *delta);
void *delta_exchange_thread(void *self);

// home_delta_pace.c

// `every`, or less at the beginning of training beside others.
uint64_t delta_distance(const struct delta *delta, const _Atomic uint64_t *every);
// The clocks at which a push, and a pull, are due.
uint64_t delta_push_due(struct delta *delta);
uint64_t delta_pull_due(struct delta *delta);
// Where an exchange that is begun now counts from.
uint64_t delta_exchange_clock(struct delta *delta, const _Atomic uint64_t *last,
                              const _Atomic uint64_t *every);
// Whether the threads are too far ahead of the servers.
bool delta_is_adrift(struct delta *delta);

#endif
