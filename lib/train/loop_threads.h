// What the parts of the training loop share. Inside lib/train/loop*.c only.
#ifndef ADAM_TRAIN_LOOP_THREADS_H
#define ADAM_TRAIN_LOOP_THREADS_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/error.h"
#include "core/gate.h"
#include "core/mem.h"
#include "train/frozen.h"
#include "train/loop.h"
#include "train/solo.h"

// One training thread. The counters are written by it alone, read by the caller.
struct loop_thread {
    _Alignas(MEM_ALIGN) struct loop *loop;
    int index;
    pthread_t id;
    struct net *net;
    int32_t *other; // of the mini-batch that this thread took, where samples are mixed
    float *share;
    struct frozen_thread frozen;
    struct leg *legs; // of a partition (train/flights.h)
    struct solo solo; // asynchronous: of this thread
    int first;        // synchronous: of the chunk in hand, its first sample
    struct error err;
    _Atomic uint64_t samples;
    _Atomic double loss, waited;
};

// Parameters of one layer that are added up and applied together.
struct update_piece {
    const struct layer *layer;
    struct span span;
    double squares; // of the gradient's sum, where it is to be clipped
    float factor;   // then, of its layer
};

// One synchronous mini-batch.
struct step {
    struct barrier barrier;
    struct batch *batch; // NULL: none, the threads park
    float rate;
    int chunk;                   // samples of a chunk
    int chunks;                  // of this mini-batch
    float *gradients;            // one a chunk, one behind the other
    size_t stride;               // floats from one to the next
    double *losses;              // one a chunk
    struct update_piece *pieces; // of all parameters, in order
    size_t piece_count;
    _Atomic int next_chunk;
    _Atomic size_t next_sum, next_update; // pieces
    atomic_bool refused;                  // the gradient is not finite
};

// Whether the round is one turn without samples.
enum loop_turn { TURN_NONE, TURN_WANTED, TURN_TAKEN };

struct loop {
    struct loop_config config;
    struct loop_thread *threads;
    int started;
    uint64_t first_clock; // of the home, when the loop was opened
    struct step step;
    struct flights *flights;                    // of partitions
    _Alignas(MEM_ALIGN) _Atomic uint64_t next;  // the mini-batch to train on next
    _Alignas(MEM_ALIGN) _Atomic uint64_t until; // not this one any more
    _Atomic uint64_t place;                     // the newest mini-batch that was taken
    atomic_int turn;                            // enum loop_turn
    atomic_bool closing, exhausted, diverged;
    _Atomic double diverged_loss;
    _Atomic float diverged_input; // see loop_diverged_input
    _Atomic int running;
    _Atomic uint32_t round; // grows with each loop_start
    struct gate begin, end; // a round begins; the last thread has parked
};

// The next mini-batch, or NULL when the round is over or the supply has no more; counts
// the waiting. Each time that patience ends without one, calls loop_end_step with 0 samples.
struct batch *loop_thread_take(struct loop_thread *thread);
// The same, with n = 0 when patience ends without one.
struct batch *loop_thread_try(struct loop_thread *thread, double patience);
// Whether the round goes on, and then one more mini-batch of it is trained, or not after all.
bool loop_claim(struct loop *loop);
void loop_unclaim(struct loop *loop);
// Samples [first, first + n) of the mini-batch, as the net reads them. Valid until the thread's
// next call.
float *loop_thread_input(struct loop_thread *thread, const struct batch *batch, int first, int n);
// Calls the step function of the configuration, if there is one.
void loop_end_step(struct loop *loop, int samples, float rate);
void loop_thread_count(struct loop_thread *thread, int samples, double loss);
// The thread met a loss or gradient that is not finite in this mini-batch.
void loop_diverge(struct loop_thread *thread, const struct batch *batch, double loss);
float loop_rate(const struct loop *loop, uint64_t number);

// One round of one thread.
void loop_async(struct loop_thread *thread);
void loop_sync(struct loop_thread *thread);
void loop_partitions(struct loop_thread *thread);

// The step's buffers, whose size depends on the mini-batch and the model alone.
int step_open(struct step *step, const struct loop_config *config, struct error *err);
void step_close(struct step *step);
int step_chunk(const struct model *model, int batch);

#endif
