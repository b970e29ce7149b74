// "The first version locally computes and accumulates the weight updates in a buffer
//  that is periodically sent to the parameter server machines when k [...] images
//  have been processed." (Adam 3.2.6)
// Here threads of one machine do so with the weights that they share: when cache-line contention
// dominates, each thread trains on a private copy and merges periodically. With small mini-batches
// on shared weights, each thread would find nearly every cache line changed by another core, and
// fetching it takes as long as from memory. Figures: tests/bench/results/threads.txt.
//
// Ownership: a copy belongs to its thread. Only the thread that holds `merging` changes the shared
// arrays; other threads, such as those that evaluate, may read them meanwhile.
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hogwild.h"
#include "core/mem.h"
#include "kernels/kernels.h"
#include "train/home.h"

struct copy {
    float *parameters, *begin;  // now, and at the last merge
    float *state, *begin_state; // likewise, one behind the other; NULL for sgd
    int pending;                // mini-batches since the last merge
    uint64_t updates;           // of its state, since that was zeros
    bool filled;
    char apart[MEM_ALIGN]; // keeps the next thread's copy on other cache lines
};

struct copies {
    struct home home;
    struct home_config config; // of which the parameters, and what is kept of them, are shared
    struct copy *copies;
    int every; // mini-batches between merges
    _Atomic uint64_t clock;
    atomic_flag merging;
};

HOGWILD static void copy_floats(float *to, const float *from, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

static size_t parameters_of(const struct copies *copies) {
    return copies->config.model->parameter_count;
}

static size_t state_of(const struct copies *copies) { // floats of it
    return parameters_of(copies) * (size_t)optimizer_states(copies->config.optimizer->rule);
}

static void fill_copy(const struct copies *copies, struct copy *copy) {
    const struct home_config *config = &copies->config;
    size_t n = parameters_of(copies), state = state_of(copies);
    copy_floats(copy->parameters, config->parameters, n);
    copy_floats(copy->begin, copy->parameters, n);
    if (config->state) {
        copy_floats(copy->state, config->state, state);
        copy_floats(copy->begin_state, copy->state, state);
    }
    copy->updates = (atomic_load(&copies->clock) - config->since) / (uint64_t)config->threads;
    copy->filled = true;
    copy->pending = 0;
}

// Adds the copy's changes to the shared arrays. AdaGrad's sums of squares add up over threads;
// velocities and means stay private. The average is that of the shared weights.
static void merge_copy(struct copies *copies, struct copy *copy) {
    const struct home_config *config = &copies->config;
    size_t n = parameters_of(copies);
    config->kernels->merge(config->parameters, copy->parameters, copy->begin, n);
    if (config->optimizer->rule == RULE_ADAGRAD)
        config->kernels->merge(config->state, copy->state, copy->begin_state, n);
    if (copy->pending > 0)
        home_average(config, atomic_load(&copies->clock), (unsigned)copy->pending, 0, n);
    copy->pending = 0;
}

// Stores the thread's own state as the shared one: that of the thread that stops last remains.
static void leave_state(const struct copies *copies, const struct copy *copy) {
    const struct home_config *config = &copies->config;
    if (config->optimizer->rule != RULE_ADAGRAD && config->state)
        copy_floats(config->state, copy->state, state_of(copies));
}

// Sums of squares are in the end of all, other state is the threads' own.
static struct optimizer copies_rule(const struct copies *copies, const struct copy *copy) {
    struct optimizer rule = home_rule(&copies->config, copy->updates);
    rule.ema = 0; // merge_copy moves the average
    if (rule.rule != RULE_ADAGRAD)
        rule.learners *= (unsigned)copies->config.threads;
    return rule;
}

static struct copy *thread_copy(struct home *home, int thread) {
    return &((struct copies *)home)->copies[thread];
}

static const float *copies_weights(struct home *home, int thread) {
    struct copy *copy = thread_copy(home, thread);
    if (!copy->filled)
        fill_copy((struct copies *)home, copy);
    return copy->parameters;
}

static void copies_add(struct home *home, int thread, const struct layer *layer, struct span span,
                       const float *gradient, float rate) {
    struct copies *copies = (struct copies *)home;
    struct copy *copy = thread_copy(home, thread);
    const struct optimizer rule = copies_rule(copies, copy);
    optimizer_apply(&rule, copies->config.kernels, layer, span, copy->parameters, copy->state,
                    gradient, rate);
}

static void copies_add_product(struct home *home, int thread, const struct layer *layer,
                               const struct dense_errors *errors, const float *dbiases, int first,
                               float rate) {
    struct copies *copies = (struct copies *)home;
    struct copy *copy = thread_copy(home, thread);
    (void)first;
    const struct optimizer rule = copies_rule(copies, copy);
    optimizer_apply_product(&rule, copies->config.kernels, layer, copy->parameters, copy->state,
                            errors, dbiases, rate);
}

static uint64_t copies_clock(const struct home *home) {
    return atomic_load(&((const struct copies *)home)->clock);
}

// Does not wait while another thread merges: the copy is merged after a later mini-batch.
static void copies_add_clock(struct home *home, int thread, int samples) {
    struct copies *copies = (struct copies *)home;
    struct copy *copy = thread_copy(home, thread);
    (void)samples;
    atomic_fetch_add(&copies->clock, 1);
    copy->updates++;
    if (++copy->pending < copies->every ||
        atomic_flag_test_and_set_explicit(&copies->merging, memory_order_acquire))
        return;
    merge_copy(copies, copy);
    atomic_flag_clear_explicit(&copies->merging, memory_order_release);
}

static void copies_settle(struct home *home, int thread) {
    struct copies *copies = (struct copies *)home;
    struct copy *copy = thread_copy(home, thread);
    if (!copy->filled)
        return;
    while (atomic_flag_test_and_set_explicit(&copies->merging, memory_order_acquire))
        sched_yield();
    merge_copy(copies, copy);
    leave_state(copies, copy);
    atomic_flag_clear_explicit(&copies->merging, memory_order_release);
    copy->filled = false; // the shared weights may change before the thread trains again
}

static void copies_close(struct home *home) {
    struct copies *copies = (struct copies *)home;
    for (int i = 0; copies->copies && i < copies->config.threads; i++) {
        struct copy *copy = &copies->copies[i];
        free(copy->parameters), free(copy->begin), free(copy->state), free(copy->begin_state);
    }
    free(copies->copies);
    free(copies);
}

static const struct home_ops copies_ops = {
    .weights = copies_weights,
    .add = copies_add,
    .settle = copies_settle,
    .clock = copies_clock,
    .add_clock = copies_add_clock,
    .close = copies_close,
};

static const struct home_products copies_products = {
    .takes = home_applies_product,
    .add = copies_add_product,
};

// Leaves the memory untouched: the thread fills it, so that it lies on the thread's NUMA node.
static bool copy_open(struct copy *copy, size_t n, size_t state) {
    copy->parameters = mem_untouched_floats(n);
    copy->begin = mem_untouched_floats(n);
    if (state) {
        copy->state = mem_untouched_floats(state);
        copy->begin_state = mem_untouched_floats(state);
    }
    return copy->parameters && copy->begin && (!state || (copy->state && copy->begin_state));
}

// Multiply-adds that take as long as merging one parameter: 24 bytes of memory traffic.
#define MERGE_PRICE 27.0
// Share of the time that merging may take: more costs as much as contention does.
#define MERGE_SHARE 0.025

// Samples of a thread between merges.
enum {
    MERGE_LEAST = 32,  // more often gains no accuracy
    MERGE_MOST = 128,  // more rarely loses accuracy
    MISSED_MOST = 128, // samples of all other threads that a thread has not seen: the same
};

// Cost of merging all parameters, in training passes of one sample.
static double merge_price(const struct model *model) {
    uint64_t useful = 0;
    for (int i = 0; i < model->layer_count; i++)
        useful += model->layers[i].useful;
    return MERGE_PRICE * (double)model->parameter_count / (3.0 * (double)useful);
}

int home_merge_batches(const struct model *model, int threads, int batch) {
    double samples = fmax(merge_price(model) / MERGE_SHARE, MERGE_LEAST);
    int others = threads > 1 ? threads - 1 : 1;
    double most = fmax(fmin((double)MISSED_MOST / others, MERGE_MOST), MERGE_LEAST);
    return ((int)fmin(samples, most) + batch - 1) / batch;
}

int home_copies(struct home **out, const struct home_config *config, struct error *err) {
    const struct model *model = config->model;
    const int threads = config->threads;
    struct copies *copies = mem_zeroed(1, sizeof *copies);
    if (!copies)
        return error_nomem(err);
    *copies = (struct copies){
        .home = {.ops = &copies_ops, .products = &copies_products, .apart = true},
        .config = *config,
        .copies = mem_zeroed((size_t)threads, sizeof *copies->copies),
        .every = home_merge_batches(model, threads, config->batch),
        .clock = config->clock,
        .merging = ATOMIC_FLAG_INIT,
    };
    bool whole = copies->copies != NULL;
    for (int i = 0; whole && i < threads; i++)
        whole = copy_open(&copies->copies[i], model->parameter_count,
                          config->state ? state_of(copies) : 0);
    if (!whole) {
        copies_close(&copies->home);
        return error_nomem(err);
    }
    *out = &copies->home;
    return STATUS_OK;
}

enum {
    CACHED_FLOATS = 4 << 20, // of all threads: larger models come from memory anyway
    SMALL_BATCH = 16,        // below it contention costs more than any merging
};

bool home_copies_pay(const struct model *model, int threads, int batch) {
    return threads > 1 && model->parameter_count <= CACHED_FLOATS / (size_t)threads &&
           batch < SMALL_BATCH;
}

int home_copies_arrays(const struct model *model, int threads, int batch) {
    return home_copies_pay(model, threads, batch) ? 2 * threads : 0;
}
