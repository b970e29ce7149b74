// Training steps, or forward passes, of one thread on random samples in memory that never
// change: what adam-ctl time and the benchmarks measure. A step is that of asynchronous
// training itself (train/solo.h), at learning rate 0, so that none differs from the others;
// a forward pass is that of evaluation after some time (model/prepared.h).
//
// Belongs to one thread.
#ifndef ADAM_MEASURE_TRIAL_H
#define ADAM_MEASURE_TRIAL_H

#include "core/mem.h"
#include "model/net_team.h"
#include "model/prepared.h"
#include "train/solo.h"

struct error;

struct trial {
    struct solo solo; // the caller's until trial_open: kernels, optimizer, home, thread
    enum net_mode mode;
    int team; // threads that share each forward pass (model/net_team.h); 0: this one has it alone
    // Its own.
    struct batch batch;
    struct arena arena;
    struct prepared *prepared; // its weights, where they stay as they are
    struct net_team *shared;   // NULL: nobody shares
};

// For so many samples a pass, by thread number solo.thread of `threads`. trial_close also
// after a failure.
int trial_open(struct trial *trial, const struct model *model, int batch, int threads,
               struct error *err);
// One step, or one forward pass. False as solo_train.
bool trial_pass(struct trial *trial);
// Where threads share passes, the others wait for this one from trial_ready on, and go on without
// it after trial_rest. For benchmarks of several threads (tests/bench/steps.c).
void trial_ready(struct trial *trial);
void trial_rest(struct trial *trial);
void trial_close(struct trial *trial);

// Of one pass of `layer` over one sample, two for each multiply-add that has to be
// computed; 0 for a backward pass that is not done.
double trial_flops(const struct trial *trial, const struct layer *layer, enum net_pass pass);

#endif
