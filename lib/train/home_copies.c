// "The first version locally computes and accumulates the weight updates in a buffer
//  that is periodically sent to the parameter server machines when k [...] images
//  have been processed." (Adam 3.2.6)
// Here the threads of one machine do so with the weights that they share. Learned on
// two cores, MNIST net: with mini-batches of one, two threads on one set of weights
// were half as fast as one alone, since each found nearly every weight changed by the
// other, and a line of another core's cache takes as long as memory.
//
// Ownership: a copy is its thread's. The shared arrays are changed by whichever thread
// holds `merging`; others, such as those that evaluate, may read meanwhile.
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/hogwild.h"
#include "core/mem.h"
#include "train/home.h"

struct copy {
    float *parameters, *begin;  // as they are, and as they were taken over
    float *state, *begin_state; // NULL for sgd
    int pending;                // mini-batches since
    bool filled;
    char apart[MEM_ALIGN]; // from what the next thread writes
};

struct copies {
    struct home home;
    const struct model *model;
    const struct optimizer *optimizer;
    const struct kernels *kernels;
    float *parameters, *state; // shared
    struct copy *copies;
    int threads, every; // mini-batches between merges
    _Atomic uint64_t clock;
    atomic_flag merging;
};

HOGWILD static void copy_floats(float *to, const float *from, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

static void fill(const struct copies *copies, struct copy *copy) {
    size_t n = copies->model->parameter_count;
    copy_floats(copy->parameters, copies->parameters, n);
    copy_floats(copy->begin, copy->parameters, n);
    if (copies->state) {
        copy_floats(copy->state, copies->state, n);
        copy_floats(copy->begin_state, copy->state, n);
    }
    copy->filled = true;
    copy->pending = 0;
}

// Sums of squares add up over threads; a velocity is its thread's own.
static void merge(struct copies *copies, struct copy *copy) {
    size_t n = copies->model->parameter_count;
    copies->kernels->merge(copies->parameters, copy->parameters, copy->begin, n);
    if (copies->optimizer->rule == RULE_ADAGRAD)
        copies->kernels->merge(copies->state, copy->state, copy->begin_state, n);
    copy->pending = 0;
}

// The shared velocity is that of whichever thread stopped last.
static void leave_velocity(const struct copies *copies, const struct copy *copy) {
    if (copies->optimizer->rule == RULE_MOMENTUM && copies->state)
        copy_floats(copies->state, copy->state, copies->model->parameter_count);
}

// Velocities are the threads' own, sums of squares in the end of all.
static struct optimizer rule_of(const struct copies *copies) {
    struct optimizer rule = *copies->optimizer;
    unsigned learners = atomic_load(&copies->optimizer->learners);
    if (rule.rule == RULE_MOMENTUM)
        learners = (learners > 1 ? learners : 1) * (unsigned)copies->threads;
    atomic_init(&rule.learners, learners);
    return rule;
}

static struct copy *copy_of(struct home *home, int thread) {
    return &((struct copies *)home)->copies[thread];
}

static const float *copies_weights(struct home *home, int thread) {
    struct copy *copy = copy_of(home, thread);
    if (!copy->filled)
        fill((struct copies *)home, copy);
    return copy->parameters;
}

static void copies_add(struct home *home, int thread, const struct layer *layer, struct span span,
                       const float *gradient, float rate) {
    struct copies *copies = (struct copies *)home;
    struct copy *copy = copy_of(home, thread);
    const struct optimizer rule = rule_of(copies);
    optimizer_apply(&rule, copies->kernels, layer, span, copy->parameters, copy->state, gradient,
                    rate);
}

static void copies_add_product(struct home *home, int thread, const struct layer *layer,
                               const struct dense_errors *errors, const float *dbiases,
                               float rate) {
    struct copies *copies = (struct copies *)home;
    struct copy *copy = copy_of(home, thread);
    const struct optimizer rule = rule_of(copies);
    optimizer_apply_product(&rule, copies->kernels, layer, copy->parameters, copy->state, errors,
                            dbiases, rate);
}

static uint64_t copies_clock(const struct home *home) {
    return atomic_load(&((const struct copies *)home)->clock);
}

// Nobody waits for a thread that is merging: the next mini-batch comes first.
static void copies_add_clock(struct home *home, int thread) {
    struct copies *copies = (struct copies *)home;
    struct copy *copy = copy_of(home, thread);
    atomic_fetch_add(&copies->clock, 1);
    if (++copy->pending < copies->every ||
        atomic_flag_test_and_set_explicit(&copies->merging, memory_order_acquire))
        return;
    merge(copies, copy);
    atomic_flag_clear_explicit(&copies->merging, memory_order_release);
}

static void copies_settle(struct home *home, int thread) {
    struct copies *copies = (struct copies *)home;
    struct copy *copy = copy_of(home, thread);
    if (!copy->filled)
        return;
    while (atomic_flag_test_and_set_explicit(&copies->merging, memory_order_acquire))
        sched_yield();
    merge(copies, copy);
    leave_velocity(copies, copy);
    atomic_flag_clear_explicit(&copies->merging, memory_order_release);
    copy->filled = false; // whoever stops the threads may change the shared weights
}

static void copies_close(struct home *home) {
    struct copies *copies = (struct copies *)home;
    for (int i = 0; copies->copies && i < copies->threads; i++) {
        struct copy *copy = &copies->copies[i];
        free(copy->parameters), free(copy->begin), free(copy->state), free(copy->begin_state);
    }
    free(copies->copies);
    free(copies);
}

static const struct home_ops copies_ops = {
    .weights = copies_weights,
    .add = copies_add,
    .add_product = copies_add_product,
    .clock = copies_clock,
    .add_clock = copies_add_clock,
    .apart = true,
    .settle = copies_settle,
    .close = copies_close,
};

// Their thread fills them, so that they lie on its NUMA node.
static bool open_copy(struct copy *copy, size_t n, bool state) {
    copy->parameters = mem_untouched_floats(n);
    copy->begin = mem_untouched_floats(n);
    if (state) {
        copy->state = mem_untouched_floats(n);
        copy->begin_state = mem_untouched_floats(n);
    }
    return copy->parameters && copy->begin && (!state || (copy->state && copy->begin_state));
}

// Merging one parameter takes as long as so many multiply-adds: 24 bytes at 108 GB/s,
// beside 120 G multiply-adds a second (MNIST net, two threads of a Zen 5).
#define MERGE_PRICE 27.0
// What merging may take of the time, where it is a matter of choice.
#define MERGE_SHARE 0.025

// As rarely as that asks for, but within these limits; and so often that no thread misses
// more than MISSED_MOST samples of all the others, or MERGE_LEAST of each. (With 512 held
// back by four threads MNIST ended 0.1 to 0.2% lower after 6 epochs, with 256 by two no
// lower. cifar10_full at mini-batches of 16, two threads, 40 epochs with momentum 0.9: 80.90 and
// 81.04% merged after 16 samples, 80.73 and 81.11% after 32, 79.85% after 128. Never to merge makes
// its two threads 1.7% faster than after 16.)
enum { MERGE_LEAST = 32, MERGE_MOST = 128, MISSED_MOST = 128 };

// The price of merging all parameters, in training passes of one sample.
static double merge_price(const struct model *model) {
    uint64_t useful = 0;
    for (int i = 0; i < model->layer_count; i++)
        useful += model->layers[i].useful;
    return MERGE_PRICE * (double)model->parameter_count / (3.0 * (double)useful);
}

int home_merge_samples(const struct model *model, int threads) {
    double samples = fmax(merge_price(model) / MERGE_SHARE, MERGE_LEAST);
    int others = threads > 1 ? threads - 1 : 1;
    double most = fmax(fmin((double)MISSED_MOST / others, MERGE_MOST), MERGE_LEAST);
    return (int)fmin(samples, most);
}

int home_copies(struct home **out, const struct model *model, const struct optimizer *optimizer,
                const struct kernels *kernels, float *parameters, float *state, uint64_t clock,
                int threads, int batch, struct error *err) {
    struct copies *copies = mem_zeroed(1, sizeof *copies);
    if (!copies)
        return error_nomem(err);
    *copies = (struct copies){
        .home = {&copies_ops},
        .model = model,
        .optimizer = optimizer,
        .kernels = kernels,
        .parameters = parameters,
        .state = state,
        .copies = mem_zeroed((size_t)threads, sizeof *copies->copies),
        .threads = threads,
        .every = (home_merge_samples(model, threads) + batch - 1) / batch,
        .clock = clock,
        .merging = ATOMIC_FLAG_INIT,
    };
    bool whole = copies->copies != NULL;
    for (int i = 0; whole && i < threads; i++)
        whole = open_copy(&copies->copies[i], model->parameter_count, state != NULL);
    if (!whole) {
        copies_close(&copies->home);
        return error_nomem(err);
    }
    *out = &copies->home;
    return STATUS_OK;
}

// Larger models come from memory for every mini-batch anyway.
enum { CACHED_FLOATS = 4 << 20 };
// Mini-batches of fewer samples need copies whatever merging costs.
enum { SMALL_BATCH = 16 };

bool home_copies_pay(const struct model *model, int threads, int batch) {
    int samples = home_merge_samples(model, threads);
    return threads > 1 && model->parameter_count <= CACHED_FLOATS / (size_t)threads &&
           (batch < SMALL_BATCH ||
            merge_price(model) <= MERGE_SHARE * (samples > batch ? samples : batch));
}
