// The training threads of one process.
//
// "Model training on a machine is multi-threaded with different images assigned
//  to threads that share the model weights. Each thread allocates a training
//  context for feed-forward evaluation and back propagation." (Adam 3.2.1)
//
// Asynchronous (Hogwild): each thread takes its own mini-batch and adds its gradient
// to the shared weights without locks, layer by layer, during the backward pass.
// Synchronous: all threads work on one mini-batch, cut into chunks. The sum of the
// chunks' gradients is applied once. Chunks depend on the mini-batch alone and are
// summed in order, so the result does not depend on the number of threads.
//
// One thread, which does not train, calls all functions.
#ifndef ADAM_TRAIN_LOOP_H
#define ADAM_TRAIN_LOOP_H

#include <stdbool.h>

#include "data/supply.h"
#include "model/net.h"
#include "run/schedule.h"
#include "train/home.h"
#include "train/mix.h"

struct cut;
struct error;
struct frozen;
struct neighbours;

// Converts mini-batches to epochs. The last mini-batch of an epoch may be short.
struct pace {
    uint64_t samples; // of one epoch; 0: unknown, and progress stays 0
    uint64_t batch;   // samples of a mini-batch
};

uint64_t pace_per_epoch(const struct pace *pace);
// Epochs completed before mini-batch `number`.
double pace_epoch(const struct pace *pace, uint64_t number);
// The first mini-batch at or after `epoch`.
uint64_t pace_number(const struct pace *pace, double epoch);

// Called when a synchronous mini-batch of `samples` at learning rate `rate` is complete and
// added to the home, and not called when it was refused. 0 samples: no mini-batch came within
// `patience`. One training thread calls; synchronous ones wait for it.
typedef void loop_step(void *self, int samples, float rate);

// The caller keeps what this points to until the loop is closed.
struct loop_config {
    const struct model *model;
    const struct kernels *kernels;
    const struct optimizer *optimizer;
    const struct schedule *schedule;
    struct home *home;
    struct supply *supply; // of the neighbours but the first: NULL
    double patience;       // seconds to wait for a mini-batch; SUPPLY_PATIENT: no limit
    loop_step *step;       // may be NULL
    void *step_self;
    struct pace pace;
    uint64_t first; // the first mini-batch that the supply gives
    int threads;
    int batch; // most samples of a mini-batch
    bool sync;
    uint64_t seed; // of dropout
    struct mix mix;
    // Below what is trained: then `model` is frozen_above(), and the supply's samples are what it
    // reads. NULL: nothing is.
    struct frozen *frozen;
    // A cut of the model: each thread is a partition, and the home is home_partitions(). In the air
    // at a time are so many mini-batches or, synchronous, parts of one. NULL: threads have all of
    // the model.
    const struct cut *cut;
    int in_flight;
    // Other processes have the other partitions: one thread has one of them, whose parameters the
    // home has. Only the first has a supply. NULL: all are here.
    const struct neighbours *neighbours;
};

struct loop;

// Starts the threads. Each allocates its context once. On a machine with several NUMA nodes
// threads are bound to nodes, neighbouring threads to the same node, and contexts are local.
// STATUS_IO: out of memory, or a thread could not be started.
int loop_open(struct loop **out, const struct loop_config *config, struct error *err);

// While the threads are stopped: a turn without samples, of all partitions where others have some.
// Waits until it is over.
void loop_turn(struct loop *loop);

// The next mini-batch. Valid while the threads are stopped.
uint64_t loop_next(const struct loop *loop);
// The number of the newest mini-batch that the supply gave.
uint64_t loop_place(const struct loop *loop);
// Starts training up to, but not including, mini-batch `until`. Does not wait.
void loop_start(struct loop *loop, uint64_t until);
// Waits at most `seconds` until the threads have stopped (< 0: no limit). False: they still
// train.
bool loop_wait(struct loop *loop, double seconds);
// Makes the threads stop after their present mini-batches. Does not wait.
void loop_pause(struct loop *loop);

// Sums since loop_open. Exact while the threads are stopped.
struct loop_sums {
    uint64_t samples;
    double loss;   // sum over the samples, before each update
    double waited; // seconds all threads together waited for data
};
struct loop_sums loop_sums(const struct loop *loop);

// Whether the supply has ended since loop_start.
bool loop_exhausted(const struct loop *loop);
// Whether a loss or gradient was not finite. Its update was refused and training stopped.
// *loss (may be NULL) is the loss per sample of that mini-batch.
bool loop_diverged(const struct loop *loop, double *loss);
// The largest absolute input of that mini-batch; NAN: an input was not finite; 0: it is not here:
// layers below have changed it (loop_config.frozen), or another process has it.
float loop_diverged_input(const struct loop *loop);

// Stops and ends the threads, and frees everything.
void loop_close(struct loop *loop);

#endif
