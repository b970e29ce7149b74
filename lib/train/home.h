// Where the parameters live. One training loop, several homes, one interface
// (get weights, add update, clock): local memory now; shared memory and
// parameter servers are homes of their own.
#ifndef ADAM_TRAIN_HOME_H
#define ADAM_TRAIN_HOME_H

#include "rule/optimizer.h"
#include "run/settings.h"

struct home;

struct home_ops {
    // The weights that the next pass should use. Valid and, for local homes,
    // changing under the caller's eyes, until the next call by this thread.
    const float *(*weights)(struct home *home, int thread);
    // Adds a part of one layer's gradient (`gradient` is that of the whole layer) at
    // the learning rate of the moment.
    void (*add)(struct home *home, int thread, const struct layer *layer, struct span span,
                const float *gradient, float rate);
    // Adds the gradient of a dense layer that is still a product, and writes the errors
    // of its inputs (net_offer). NULL: this home wants gradients.
    void (*add_product)(struct home *home, int thread, const struct layer *layer,
                        const struct dense_errors *errors, const float *dbiases, float rate);
    // Whether this home takes the gradient of a dense layer as the product that it is, of
    // synchronous threads: it is told of each part of the mini-batch, from sample `first`
    // on, instead of being given sums. Neither touches weights. NULL: of no layer.
    bool (*takes_factors)(const struct home *home, const struct layer *layer);
    void (*add_factors)(struct home *home, const struct layer *layer,
                        const struct dense_errors *errors, int first);
    // Threads that share passes over weights, and wait for each other there. `enter`: the
    // thread begins a mini-batch of so many samples at this rate. `forward`: y (samples x
    // units) of a dense layer; false: not by this home. `leave`: nobody waits for the
    // thread until it enters again; before it waits for anything else, and when it does not
    // go on with the mini-batch as the others do: then it is alone with the rest. NULL, all
    // of them: no thread waits for another.
    void (*enter)(struct home *home, int thread, int samples, float rate);
    bool (*forward)(struct home *home, int thread, const struct layer *layer, float *y,
                    const float *x, int n);
    void (*leave)(struct home *home, int thread);
    // Mini-batches applied so far. add_clock is called by the thread once a mini-batch.
    uint64_t (*clock)(const struct home *home);
    void (*add_clock)(struct home *home, int thread);
    // A mini-batch of so many samples is whole, each part of its gradient added, at this
    // rate; told by one of the synchronous threads before they begin the next, alone. 0
    // samples: there was no mini-batch in the time that the loop has patience. NULL:
    // nobody wants to know.
    void (*step)(struct home *home, int samples, float rate);
    // Each thread has weights of its own: none waits for lines that another has changed.
    bool apart;
    // The thread stops: what it has added is to be seen by all. NULL: it always is.
    void (*settle)(struct home *home, int thread);
    void (*close)(struct home *home);
};

struct home { // a home's own struct begins with this
    const struct home_ops *ops;
};

// Parameters in this process's memory, shared by its threads: "we access and update the shared
// model weights locally without using locks" (Adam 3.2.2). Races are wanted, in the HOGWILD
// functions of the kernels. `parameters` and `state` are the caller's.
int home_local(struct home **out, const struct model *model, const struct optimizer *optimizer,
               const struct kernels *kernels, float *parameters, float *state, uint64_t clock,
               struct error *err);

// The same for threads that would spend their time on taking the shared weights out of
// each other's caches: each works on a copy of its own, and every so many samples adds
// what it has changed to the shared ones, and takes them over.
int home_merge_samples(const struct model *model, int threads);
int home_copies(struct home **out, const struct model *model, const struct optimizer *optimizer,
                const struct kernels *kernels, float *parameters, float *state, uint64_t clock,
                int threads, int batch, struct error *err);

// The same as home_local for threads whose large dense layers are read from memory: those
// that train at the same time go over the weights together, so that each weight is read
// once forward, and read and written once backward, for the mini-batches of all of them,
// each by one thread. The result is that of threads which all read the weights before any
// of them changes them. Threads that are in a mini-batch together wait for each other at
// each of those layers (home_joined.c). Only for sgd that does not clip.
int home_joined(struct home **out, const struct model *model, const struct optimizer *optimizer,
                const struct kernels *kernels, float *parameters, uint64_t clock, int threads,
                int batch, struct error *err);
// Whether there is anything to gain.
bool home_joins(const struct model *model, const struct optimizer *optimizer, int threads,
                int batch);

// Whether --home joined can be: STATUS_USAGE where the rule is not sgd or clips, the threads have
// more samples together than a joined pass takes, or no dense layer is large enough.
int home_joined_check(const struct model *model, const struct optimizer *optimizer, int threads,
                      int batch, struct error *err);
// Whether copies stay in the caches of all threads, and mini-batches are small or merging is next
// to nothing.
bool home_copies_pay(const struct model *model, int threads, int batch);

// The homes of asynchronous threads: "threads that share the model weights", "without using
// locks" (Adam 3.2.2) as it stands there (HOME_SHARED); copies that are merged (HOME_COPIES);
// joined passes (HOME_JOINED).
// The fastest: copies where they pay; else joined passes where home_joins says so; else shared.
enum home_kind home_best(const struct model *model, const struct optimizer *optimizer, int threads,
                         int batch);
// The one that the settings name, or else the best. STATUS_USAGE where that cannot be.
int home_choose(enum home_kind *kind, const struct settings *settings, const struct model *model,
                const struct optimizer *optimizer, int threads, struct error *err);
// "2 threads, each on a copy of the weights, merged every 32 samples (--home copies)". Gives
// `text`.
const char *home_text(char text[128], enum home_kind kind, const struct model *model, int threads);
int home_open(struct home **out, enum home_kind kind, const struct model *model,
              const struct optimizer *optimizer, const struct kernels *kernels, float *parameters,
              float *state, uint64_t clock, int threads, int batch, struct error *err);
// The best one.
int home_for_threads(struct home **out, const struct model *model,
                     const struct optimizer *optimizer, const struct kernels *kernels,
                     float *parameters, float *state, uint64_t clock, int threads, int batch,
                     struct error *err);

#endif
