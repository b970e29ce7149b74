// The training threads of one process.
//
// "Model training on a machine is multi-threaded with different images assigned
//  to threads that share the model weights. Each thread allocates a training
//  context for feed-forward evaluation and back propagation." (Adam 3.2.1)
//
// Asynchronous (Hogwild): each thread takes a mini-batch of its own, and adds its
// gradient to the shared weights layer by layer, without locks, as soon as the
// backward pass has it.
// Synchronous: all threads work on one mini-batch, cut into chunks; the sum of
// their gradients is applied once. The chunks depend on the mini-batch alone and
// are added in order, so the result does not depend on the number of threads.
//
// All functions are called by one thread, which trains nothing itself.
#ifndef ADAM_TRAIN_LOOP_H
#define ADAM_TRAIN_LOOP_H

#include <stdbool.h>

#include "data/supply.h"
#include "model/net.h"
#include "run/schedule.h"
#include "train/home.h"

// Mini-batches to epochs: the last mini-batch of an epoch may be short.
struct pace {
    uint64_t samples; // of one epoch; 0: unknown, and progress stays 0
    uint64_t batch;
};

uint64_t pace_per_epoch(const struct pace *pace);
// Progress in epochs before mini-batch `number`.
double pace_epoch(const struct pace *pace, uint64_t number);
// The first mini-batch at or behind `epoch`.
uint64_t pace_number(const struct pace *pace, double epoch);

// What it points to must outlive the loop.
struct loop_config {
    const struct model *model;
    const struct kernels *kernels;
    const struct optimizer *optimizer;
    const struct schedule *schedule;
    struct home *home;
    struct supply *supply;
    double patience; // seconds to wait for a mini-batch; SUPPLY_PATIENT: until it comes
    struct pace pace;
    uint64_t first; // the mini-batch that the supply gives first
    int threads, batch;
    bool sync;
    uint64_t seed;
};

struct loop;

// Starts the threads; each allocates its context, on its own NUMA node, once. Where there are
// several nodes threads are bound to them, neighbours to the same.
int loop_open(struct loop **out, const struct loop_config *config, struct error *err);

// The mini-batch that comes next, when the threads stand still.
uint64_t loop_next(const struct loop *loop);
// The newest mini-batch that the supply gave, by its number.
uint64_t loop_place(const struct loop *loop);
// Lets the threads train up to, not including, mini-batch `until`.
void loop_start(struct loop *loop, uint64_t until);
// Waits until they have come there, at most `seconds`; false: they are still at it.
bool loop_wait(struct loop *loop, double seconds);
// Makes them stop behind the mini-batches in hand; loop_wait tells when.
void loop_pause(struct loop *loop);

// Sums since loop_open. Exact when the threads stand still.
struct loop_sums {
    uint64_t samples;
    double loss;   // sum over the samples, before each update
    double waited; // seconds all threads together waited for data
};
struct loop_sums loop_sums(const struct loop *loop);

bool loop_exhausted(const struct loop *loop); // the supply had no more since loop_start
// Whether a loss or gradient was not finite: its update was refused, and nothing
// goes on. *loss (may be NULL) is the loss per sample that was seen.
bool loop_diverged(const struct loop *loop, double *loss);
// The largest absolute input of the mini-batch where that was; NAN: one was no finite number.
float loop_diverged_input(const struct loop *loop);

// Pauses, ends the threads and frees everything.
void loop_close(struct loop *loop);

#endif
