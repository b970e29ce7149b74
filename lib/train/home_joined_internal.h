// What the parts of threads that join share. Inside lib/train/home_joined*.c only.
//
//   home_joined.c          which layers are joined, and the home
//   home_joined_members.c  who is together in a mini-batch
//   home_joined_pass.c     the passes through a joined layer
#ifndef ADAM_TRAIN_HOME_JOINED_INTERNAL_H
#define ADAM_TRAIN_HOME_JOINED_INTERNAL_H

#include "core/mem.h"
#include "train/home.h"

enum { JOINED_UNITS = 16 }; // of a piece, at least: a cache line of outputs

// A thread's state. Others read it between the meetings of a pass, or at the beginning.
struct joined_thread {
    _Alignas(MEM_ALIGN) int samples;
    float rate;
    bool due; // it has not reached the first joined layer of its mini-batch
    // Of the present mini-batch:
    int members, place; // number of threads, and this one's index; below 2 members: it is alone
    int row, rows;      // its first sample among those of all members, and their number
    float factor;       // its rate over the largest rate
    float step, decays; // the largest rate; the sum of all members' factors
    const float *dbiases;
    float *errors; // of all samples' inputs, summed over the pieces that it took
    bool took;     // at least one piece, so `errors` is valid
    float *scratch;
    _Alignas(MEM_ALIGN) _Atomic int taken; // pieces of its slice in this pass, by any thread
};

struct joined {
    struct home home;
    struct home *local; // keeps all layers that are not joined
    struct home_config config;
    struct joined_thread *states;
    struct joined_thread **members; // of the mini-batch, by place; thread.members of them
    struct phaser *phaser;
    float *inputs; // samples x inputs of all threads
    float *pieces; // outputs or their error gradients: piece behind piece, each samples x units
};

static inline size_t joined_inputs(const struct layer *layer) {
    return (size_t)layer->weights.dims[1];
}

// --- home_joined.c ----------------------------------------------------------------------

// Whether so many threads go together over the layer.
bool joined_takes(const struct layer *layer, int threads);

// --- home_joined_members.c --------------------------------------------------------------

// Called by the phaser when a mini-batch begins: numbers its members.
void joined_number(void *self);
// As home_meetings has them.
void joined_enter(struct home *home, int thread, int samples, float rate);
void joined_leave(struct home *home, int thread);
// Waits for the others at the first joined layer of a mini-batch: layers below it are not
// synchronised. Returns whether the thread has company.
bool joined_begin_pass(struct joined *joined, int thread);
// Waits for all members. False: one has left, so its samples are missing; all finish alone.
bool joined_meet(struct joined *joined, struct joined_thread *member);

// --- home_joined_pass.c -----------------------------------------------------------------

// As home_meetings and home_products have them.
bool joined_forward(struct home *home, int thread, const struct layer *layer, float *y,
                    const float *x, int n);
void joined_add_product(struct home *home, int thread, const struct layer *layer,
                        const struct dense_errors *errors, const float *dbiases, int first,
                        float rate);

#endif
