// "Model training on a machine is multi-threaded with different images assigned to threads
//  that share the model weights." (Adam 3.2.1)
// Here threads also share reading the weights of large dense layers: each weight is read once for
// the samples of all threads, instead of once a thread.
//
// The members of a mini-batch (core/phaser.h) meet at a large dense layer with n_i samples each, N
// together. Its units are cut into a slice for each thread, and each slice into pieces.
//
//   forward    each thread copies its rows of x into `inputs` (N x inputs)      - all meet -
//              each computes pieces: their outputs for all N samples            - all meet -
//              each copies its samples' outputs from all pieces
//   backward   each thread copies its x and dy to the shared arrays, and shares
//              its gradient of the biases                                       - all meet -
//              each steps the weights and biases of pieces by all N samples,
//              and sums the error gradients of x that come from them            - all meet -
//              each adds up the error gradients of its own samples
//
// A thread takes the pieces of its own slice first, then those that other slices have left, so
// that a slow processor delays a meeting by one piece at most.
//
// Meetings must cost less than reading the weights: see home_joins(). Figures:
// tests/bench/results/threads.txt.
//
// Memory: a thread reads what another has written only after the next meeting, so all stores are
// plain.
//
// Rates may differ between threads: x is multiplied by the thread's rate over the largest one, so
// that dy^T x is the right step at the largest rate; the error gradients do not depend on x.
// Weights decay once for each thread's mini-batch.
//
// Meeting: at the first joined layer of a mini-batch each thread waits for all threads that have
// entered; from then on, at each meeting, for all that began there. A thread leaves when it has no
// samples yet, stops, or finds a loss or gradient that is not finite. If it leaves after the
// beginning, the others learn at the next meeting that its samples are missing, and finish the
// mini-batch alone, as threads without locks. All threads see the same layers in the same order,
// as core/phaser.h requires.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/phaser.h"
#include "kernels/dense.h"
#include "train/home_joined_internal.h"

enum {
    JOIN_WEIGHTS = 256 * 1024, // of a layer: fewer stay in the L2 cache of each thread
    JOIN_SAMPLES = 512,        // of all threads: two parts of the step in strips (DENSE_STEP_MOST)
    JOIN_BATCH = 32,           // of a thread: with more, reading the weights is a small part
    JOIN_WORK = 64,        // multiply-adds of a mini-batch for each joined weight, at most: more
                           // make threads meet later than reading the weights takes
    JOIN_WORK_FAR = 512,   // the same when the weights come from memory each time
    FAR_WEIGHTS = 8 << 20, // from 32 MB on they do
};

bool joined_takes(const struct layer *layer, int threads) {
    return layer->weights.rank == 2 && layer->weights.count >= JOIN_WEIGHTS &&
           layer->units >= JOINED_UNITS * threads;
}

static struct home *local_home(const struct home *home) {
    return ((const struct joined *)home)->local;
}

static const float *joined_weights(struct home *home, int thread) {
    struct home *local = local_home(home);
    return local->ops->weights(local, thread);
}

static void joined_add(struct home *home, int thread, const struct layer *layer, struct span span,
                       const float *gradient, float rate) {
    struct home *local = local_home(home);
    local->ops->add(local, thread, layer, span, gradient, rate);
}

static void joined_settle(struct home *home, int thread) {
    struct home *local = local_home(home);
    local->ops->settle(local, thread);
}

static uint64_t joined_clock(const struct home *home) {
    struct home *local = local_home(home);
    return local->ops->clock(local);
}

static void joined_add_clock(struct home *home, int thread, int samples) {
    struct home *local = local_home(home);
    local->ops->add_clock(local, thread, samples);
}

static void joined_close(struct home *home) {
    struct joined *joined = (struct joined *)home;
    for (int i = 0; joined->states && i < joined->config.threads; i++)
        free(joined->states[i].errors), free(joined->states[i].scratch);
    free(joined->states);
    free(joined->members);
    phaser_close(joined->phaser);
    if (joined->local)
        joined->local->ops->close(joined->local);
    free(joined->inputs), free(joined->pieces);
    free(joined);
}

static const struct home_ops joined_ops = {
    .weights = joined_weights,
    .add = joined_add,
    .settle = joined_settle,
    .clock = joined_clock,
    .add_clock = joined_add_clock,
    .close = joined_close,
};

static const struct home_products joined_products = {
    .takes = home_applies_product,
    .add = joined_add_product,
};

static const struct home_meetings joined_meetings = {
    .enter = joined_enter,
    .forward = joined_forward,
    .leave = joined_leave,
};

bool home_joins(const struct model *model, const struct optimizer *optimizer, int threads,
                int batch) {
    uint64_t weights = 0;
    for (int i = 0; i < model->layer_count; i++)
        if (joined_takes(&model->layers[i], threads))
            weights += model->layers[i].weights.count;
    uint64_t work = weights < FAR_WEIGHTS ? JOIN_WORK : JOIN_WORK_FAR;
    return threads > 1 && optimizer->rule == RULE_SGD && optimizer->clip <= 0 &&
           batch <= JOIN_BATCH && (int64_t)threads * batch <= JOIN_SAMPLES &&
           model->connections * (uint64_t)batch <= weights * work;
}

int home_joined_check(const struct model *model, const struct optimizer *optimizer, int threads,
                      int batch, struct error *err) {
    bool some = false;
    for (int i = 0; i < model->layer_count; i++)
        some = some || joined_takes(&model->layers[i], threads);
    if (optimizer->rule != RULE_SGD || optimizer->clip > 0)
        return error_set(err, STATUS_USAGE,
                         "--home joined is for --optimizer sgd without --clip: steps of joined "
                         "layers never form a gradient");
    if ((int64_t)threads * batch > JOIN_SAMPLES)
        return error_set(err, STATUS_USAGE,
                         "--home joined is for at most %d samples of all threads together, not "
                         "%d x %d",
                         JOIN_SAMPLES, threads, batch);
    if (!some)
        return error_set(err, STATUS_USAGE,
                         "--home joined: no dense layer of %s is large enough for %d threads (%d "
                         "weights, and %d units a thread)",
                         model->name, threads, JOIN_WEIGHTS, JOINED_UNITS);
    return STATUS_OK;
}

// Zeroed states, each on cache lines of its own.
static struct joined_thread *open_states(int threads) {
    struct joined_thread *states = aligned_alloc(MEM_ALIGN, (size_t)threads * sizeof *states);
    if (states)
        memset(states, 0, (size_t)threads * sizeof *states);
    return states;
}

static bool open_buffers(struct joined *joined, int batch) {
    size_t samples = (size_t)joined->config.threads * (size_t)batch, inputs = 0, units = 0;
    for (int i = 0; i < joined->config.model->layer_count; i++) {
        const struct layer *layer = &joined->config.model->layers[i];
        if (!joined_takes(layer, joined->config.threads))
            continue;
        inputs = joined_inputs(layer) > inputs ? joined_inputs(layer) : inputs;
        units = (size_t)layer->units > units ? (size_t)layer->units : units;
    }
    joined->inputs = mem_untouched_floats(samples * inputs);
    joined->pieces = mem_untouched_floats(samples * units);
    bool whole =
        joined->inputs && joined->pieces && joined->states && joined->members && joined->phaser;
    for (int i = 0; whole && i < joined->config.threads; i++) {
        struct joined_thread *member = &joined->states[i];
        member->errors = mem_untouched_floats(samples * inputs);
        member->scratch = mem_untouched_floats(dense_scratch((int)samples, (int)inputs) + 1);
        whole = member->errors && member->scratch;
    }
    return whole;
}

int home_joined(struct home **out, const struct home_config *config, struct error *err) {
    const int threads = config->threads;
    struct joined *joined = mem_zeroed(1, sizeof *joined);
    if (!joined)
        return error_nomem(err);
    *joined = (struct joined){
        .home = {.ops = &joined_ops, .products = &joined_products, .meetings = &joined_meetings},
        .config = *config,
        .states = open_states(threads),
        .members = mem_zeroed((size_t)threads, sizeof(struct joined_thread *)),
        .phaser = phaser_open(threads, joined_number, joined),
    };
    int status = home_local(&joined->local, config, err);
    if (!status && !open_buffers(joined, config->batch))
        status = error_nomem(err);
    if (status)
        joined_close(&joined->home);
    else
        *out = &joined->home;
    return status;
}
