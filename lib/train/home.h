// Where the parameters live. There is one training loop and several homes behind one
// interface: get weights, add an update, advance the clock.
#ifndef ADAM_TRAIN_HOME_H
#define ADAM_TRAIN_HOME_H

#include <stdatomic.h>

#include "model/cut.h"
#include "rule/optimizer.h"
#include "run/settings.h"

struct error;

struct home;

// What every home has. `thread` is the caller's number, from 0.
struct home_ops {
    // The weights for the thread's next pass: parameter_count floats, owned by the home,
    // valid until the thread's next call. In a local home other threads may write to them
    // meanwhile.
    const float *(*weights)(struct home *home, int thread);
    // Adds the part `span` of one layer's gradient at learning rate `rate`. `gradient`
    // points to the whole layer's.
    void (*add)(struct home *home, int thread, const struct layer *layer, struct span span,
                const float *gradient, float rate);
    // Makes all that the thread has added visible to everybody. An asynchronous thread
    // calls it when it stops.
    void (*settle)(struct home *home, int thread);
    // Mini-batches applied so far.
    uint64_t (*clock)(const struct home *home);
    // Counts one mini-batch of so many samples. The thread that trained on it calls once.
    void (*add_clock)(struct home *home, int thread, int samples);
    void (*close)(struct home *home);
};

// Homes that accept the gradient of a dense layer as the product of its factors, before it
// is summed (net_offer).
struct home_products {
    // Whether the home accepts products of this layer: with `sync` from synchronous threads,
    // each of which has a part of the mini-batch; else from threads that have one each.
    bool (*takes)(const struct home *home, const struct layer *layer, bool sync);
    // Adds the product, and writes errors->dx unless it is NULL. `first` is the place of its
    // first sample in the mini-batch. `dbiases` has layer->units floats.
    void (*add)(struct home *home, int thread, const struct layer *layer,
                const struct dense_errors *errors, const float *dbiases, int first, float rate);
};

// `takes` of the homes that apply a product at once: not from synchronous threads, as others of
// them still read the weights.
bool home_applies_product(const struct home *home, const struct layer *layer, bool sync);

// Homes whose asynchronous threads share passes over weights, and so wait for each other.
struct home_meetings {
    // The thread begins a mini-batch of `samples` at learning rate `rate`.
    void (*enter)(struct home *home, int thread, int samples, float rate);
    // The forward pass of a dense layer: y (n x units) from x (n x inputs). False: the home
    // does not do this layer, and y is unchanged.
    bool (*forward)(struct home *home, int thread, const struct layer *layer, float *y,
                    const float *x, int n);
    // Removes the thread from the group until it enters again. Call before blocking, or when
    // abandoning the mini-batch; the thread then finishes it alone.
    void (*leave)(struct home *home, int thread);
};

struct home { // a home's own struct begins with this
    const struct home_ops *ops;
    const struct home_products *products; // NULL: accepts gradients only
    const struct home_meetings *meetings; // NULL: no thread waits for another
    bool apart;                           // each thread has weights of its own
};

// The caller keeps what this points to until the home is closed.
struct home_config {
    const struct model *model;
    const struct optimizer *optimizer; // changes only while no thread trains
    const _Atomic size_t *learners;    // its `learners`, which may change at any time; NULL: one
    const struct kernels *kernels;
    float *parameters; // parameter_count floats
    float *state;      // as many for each array that the optimizer keeps; NULL: none
    uint64_t clock;    // mini-batches applied before
    uint64_t since;    // the clock at which the state was zeros
    int threads;
    int batch; // samples of a thread's mini-batch
};

// The rule by which a thread's next gradient changes the weights, after so many updates of the
// state beside them; learners: see home_config.
struct optimizer home_rule(const struct home_config *config, uint64_t updates);
// Moves the average of the shared parameters [first, first + n), if one is kept: they have had
// `updates` updates since it moved last, and `clock` is the number of all by now, at least 1.
void home_average(const struct home_config *config, uint64_t clock, unsigned updates, size_t first,
                  size_t n);

// All constructors return STATUS_OK or STATUS_IO (out of memory). The caller closes the home
// with home->ops->close.

// All threads read and write config->parameters: "we access and update the shared
// model weights locally without using locks" (Adam 3.2.2). Updates race on purpose, in the
// HOGWILD functions of the kernels.
int home_local(struct home **out, const struct home_config *config, struct error *err);

// When cache-line contention dominates, each thread trains on a private copy and merges
// periodically: every home_merge_batches mini-batches it adds its changes to config->parameters
// and takes over what others added.
int home_copies(struct home **out, const struct home_config *config, struct error *err);
int home_merge_batches(const struct model *model, int threads, int batch);
// Whether copies pay: they fit in the caches of all threads, and mini-batches are small. With
// larger ones threads that share the weights lose little time, and learn more from each sample.
bool home_copies_pay(const struct model *model, int threads, int batch);
// Arrays as long as the weights that asynchronous threads have of their own then: none, or of each
// its copy and what that was at the last merge.
int home_copies_arrays(const struct model *model, int threads, int batch);

// For large dense layers, whose weights come from memory. Threads that train at the same
// time pass over these weights together: each weight is read once forward, and read and
// written once backward, for all their mini-batches. The result is the same as when all of
// them read the weights before any of them changes them. Threads wait for each other at each
// of these layers (home_joined.c). The rule must be sgd without clipping.
int home_joined(struct home **out, const struct home_config *config, struct error *err);
// Whether joined passes are possible and expected to be faster.
bool home_joins(const struct model *model, const struct optimizer *optimizer, int threads,
                int batch);
// Whether joined passes are possible. STATUS_USAGE: the rule is not sgd or clips, all threads
// together have more samples than a joined pass takes, or no dense layer is large enough.
int home_joined_check(const struct model *model, const struct optimizer *optimizer, int threads,
                      int batch, struct error *err);

// Thread number p has partition p of the cut, whose layers are those that it adds:
// config->parameters and config->state are the whole model's again when all threads have settled. A
// gradient of weights that several partitions have is to be the same in each.
int home_partitions(struct home **out, const struct home_config *config, const struct cut *cut,
                    struct error *err);

// The home of asynchronous threads that the settings name. STATUS_USAGE: it is not possible. Where
// they name none: copies where home_copies_pay; else joined where home_joins; else shared, which is
// home_local.
int home_choose(enum home_kind *kind, const struct settings *settings, const struct model *model,
                const struct optimizer *optimizer, int threads, struct error *err);
// "2 threads, each on a copy of the weights, merged every 32 samples (--home copies)". Returns
// `text`.
const char *home_text(char text[128], enum home_kind kind, const struct model *model, int threads,
                      int batch);
int home_open(struct home **out, enum home_kind kind, const struct home_config *config,
              struct error *err);
// Opens the best one.
int home_for_threads(struct home **out, const struct home_config *config, struct error *err);

#endif
