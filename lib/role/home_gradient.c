// Gradients. Two arrays of weights, of which one is in use and the other is written by the
// pull under way, and two of gradients, of which one is filled by the mini-batch in hand
// and the other is on its way.
//
//   step:  wait until the gradient before is delivered; push this one;
//          wait for the weights that were asked for; use them from now on
//
// "the pushGradient thread cannot start sending the current gradient before the previous
// one has been delivered. [...] In contrast, pullWeights thread has no such constraint"
// (Rudra 3.3). No thread of our own is needed: the network's move the bytes.
//
// When to pull? Early, the weights are old when they are used, and gradients staler than
// they need be; late, the next mini-batch waits. So weights are asked for at the moment
// from which, by the measure of the steps before, they will just have come when the
// mini-batch is over.
//
// hardsync: "each learner [...] pulls the weights [...] calculates the gradients and pushes
// them", and the next step needs the weights that all gradients of this one have made: a
// pull of newer ones. Who has no samples just now pushes none, so that nobody waits for
// him.
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "role/home_servers_internal.h"

#define LATELY 0.25 // weight of the last step in the means of durations
#define MARGIN 2.0  // pulls are asked for so many times their duration before the end

enum pulling {
    PULL_LATER, // at the end of a later step
    PULL_DUE,   // at the end of this one
    PULL_ASKED, // the same, and it is under way
};

struct gradient {
    struct home_servers common;
    float *weights[2], *gradient[2];
    uint64_t *versions[2]; // of `weights`
    int here, filled;      // which weights are in use, which gradient is being filled
    struct exchange *push, *pull;
    bool pushing;                // there is a push whose end was not waited for
    uint64_t mark, next_pull;    // of that push; the clock at which weights are pulled
    atomic_int pulling;          // enum pulling
    _Atomic double pull_at;      // seconds: not before
    double asked, begun;         // when it was started; when this step began
    double step_mean, pull_mean; // seconds
    _Atomic uint64_t clock;
};

static double lately(double mean, double last) {
    return mean > 0 ? mean + LATELY * (last - mean) : last;
}

// --- pulling --------------------------------------------------------------------------

// Into the array that is not in use.
static void ask_weights(struct gradient *gradient, bool newer) {
    int there = !gradient->here;
    const struct pull pull = {
        .part = PROTO_PART_WEIGHT,
        .into = gradient->weights[there],
        .versions = gradient->versions[there],
        .newer = newer,
    };
    gradient->asked = clock_seconds();
    exchange_pull(gradient->pull, &pull);
}

// Waits for what was asked for, and uses it from now on.
static bool take_weights(struct gradient *gradient, double *waited) {
    bool was_there = exchange_over(gradient->pull);
    if (!home_servers_await(&gradient->common, gradient->pull, NULL, waited))
        return false;
    if (!was_there)
        gradient->pull_mean = lately(gradient->pull_mean, clock_seconds() - gradient->asked);
    gradient->here = !gradient->here;
    return true;
}

// Newer weights than those in use: what is not in use is older still.
static bool await_newer(struct gradient *gradient, double *waited) {
    int there = !gradient->here;
    memcpy(gradient->versions[there], gradient->versions[gradient->here],
           servers_shards(gradient->common.config.servers) * sizeof **gradient->versions);
    ask_weights(gradient, true);
    return take_weights(gradient, waited);
}

// The threads look in each time that they begin a chunk of the mini-batch.
static void pull_in_time(struct gradient *gradient) {
    int due = PULL_DUE;
    if (atomic_load_explicit(&gradient->pulling, memory_order_relaxed) == PULL_DUE &&
        clock_seconds() >= atomic_load(&gradient->pull_at) &&
        atomic_compare_exchange_strong(&gradient->pulling, &due, PULL_ASKED))
        ask_weights(gradient, false);
}

// At the end of the step weights are due: uses them from now on.
static bool end_pull(struct gradient *gradient, double *waited) {
    if (atomic_load(&gradient->pulling) == PULL_DUE)
        ask_weights(gradient, false);
    gradient->next_pull = atomic_load(&gradient->clock) + atomic_load(&gradient->common.pull_every);
    return take_weights(gradient, waited);
}

// Whether the step that begins ends with new weights, and from when on they are asked for.
static void plan_pull(struct gradient *gradient) {
    bool due = atomic_load(&gradient->clock) + 1 >= gradient->next_pull;
    double early = gradient->step_mean - MARGIN * gradient->pull_mean;
    gradient->begun = clock_seconds();
    atomic_store(&gradient->pull_at, gradient->begun + (early > 0 ? early : 0));
    atomic_store(&gradient->pulling,
                 due && !gradient->common.config.hardsync ? PULL_DUE : PULL_LATER);
}

// --- a step ---------------------------------------------------------------------------

// Waits until the gradient before is delivered.
static bool deliver(struct gradient *gradient, double *waited) {
    bool stale;
    if (!gradient->pushing)
        return true;
    gradient->pushing = false;
    if (!home_servers_await(&gradient->common, gradient->push, &stale, waited))
        return false;
    home_servers_applied(&gradient->common, gradient->mark);
    return true;
}

static void send(struct gradient *gradient, int samples, float rate) {
    const struct push push = {
        .kind = PROTO_UPDATE_GRADIENT,
        .samples = (uint32_t)samples,
        .rate = (double)rate,
        .values = samples > 0 ? gradient->gradient[gradient->filled] : NULL,
        .versions = gradient->versions[gradient->here],
    };
    gradient->mark = home_servers_mark(&gradient->common);
    gradient->filled = !gradient->filled;
    gradient->pushing = true;
    exchange_push(gradient->push, &push);
}

static void step_hardsync(struct gradient *gradient, int samples, float rate, double *waited) {
    send(gradient, samples, rate);
    if (await_newer(gradient, waited))
        deliver(gradient, waited);
}

static void step_softly(struct gradient *gradient, int samples, float rate, double *waited) {
    if (samples == 0) { // nothing to do but to hear of the gradient before
        if (exchange_over(gradient->push))
            deliver(gradient, waited);
        return;
    }
    if (!deliver(gradient, waited))
        return;
    send(gradient, samples, rate);
    if (atomic_load(&gradient->pulling) != PULL_LATER)
        end_pull(gradient, waited);
}

static void gradient_step(struct home *home, int samples, float rate) {
    struct gradient *gradient = (struct gradient *)home;
    double waited = 0;
    if (home_servers_status(&gradient->common, NULL))
        return;
    if (samples > 0)
        gradient->step_mean = lately(gradient->step_mean, clock_seconds() - gradient->begun);
    if (gradient->common.config.hardsync)
        step_hardsync(gradient, samples, rate, &waited);
    else
        step_softly(gradient, samples, rate, &waited);
    home_servers_waited(&gradient->common, waited * gradient->common.config.threads);
    if (samples > 0 || gradient->common.config.hardsync)
        plan_pull(gradient);
}

// --- the loop's view ------------------------------------------------------------------

static const float *gradient_weights(struct home *home, int thread) {
    struct gradient *gradient = (struct gradient *)home;
    (void)thread;
    pull_in_time(gradient);
    return gradient->weights[gradient->here];
}

// The servers have the rule and the rate of the push: the gradient is only kept.
static void gradient_add(struct home *home, int thread, const struct layer *layer, struct span span,
                         const float *values, float rate) {
    struct gradient *gradient = (struct gradient *)home;
    float *filled = gradient->gradient[gradient->filled];
    (void)thread;
    (void)rate;
    memcpy(filled + layer->weights.offset + span.first, values + span.first,
           span.n * sizeof *values);
}

static uint64_t gradient_clock(const struct home *home) {
    return atomic_load(&((const struct gradient *)home)->clock);
}

static void gradient_add_clock(struct home *home, int thread) {
    (void)thread;
    atomic_fetch_add(&((struct gradient *)home)->clock, 1);
}

static void gradient_close(struct home *home) {
    struct gradient *gradient = (struct gradient *)home;
    exchange_close(gradient->push);
    exchange_close(gradient->pull);
    for (int i = 0; i < 2; i++)
        free(gradient->weights[i]), free(gradient->gradient[i]), free(gradient->versions[i]);
    home_servers_free(&gradient->common);
    free(gradient);
}

static const struct home_ops gradient_ops = {
    .weights = gradient_weights,
    .add = gradient_add,
    .clock = gradient_clock,
    .add_clock = gradient_add_clock,
    .step = gradient_step,
    .close = gradient_close,
};

// --- the owner's view -----------------------------------------------------------------

static int gradient_begin(struct home_servers *home, struct error *err) {
    struct gradient *gradient = (struct gradient *)home;
    ask_weights(gradient, false);
    if (!take_weights(gradient, NULL))
        return home_servers_status(home, err);
    gradient->next_pull = 1;
    plan_pull(gradient);
    return STATUS_OK;
}

static int gradient_flush(struct home_servers *home, struct error *err) {
    deliver((struct gradient *)home, NULL);
    return home_servers_status(home, err);
}

static int open_arrays(struct gradient *gradient, struct error *err) {
    const struct home_servers_config *config = &gradient->common.config;
    size_t n = config->model->parameter_count, shards = servers_shards(config->servers);
    bool whole = true;
    for (int i = 0; i < 2; i++) {
        gradient->weights[i] = mem_floats(n);
        gradient->gradient[i] = mem_floats(n);
        gradient->versions[i] = mem_zeroed(shards + 1, sizeof *gradient->versions[i]);
        whole &= gradient->weights[i] && gradient->gradient[i] && gradient->versions[i];
    }
    if (whole)
        return STATUS_OK;
    return error_set(err, STATUS_IO, "out of memory for %zu weights and gradients, twice each", n);
}

static int open_parts(struct gradient *gradient, struct error *err) {
    const struct home_servers_config *config = &gradient->common.config;
    const struct span all = servers_all(config->servers);
    int status = open_arrays(gradient, err);
    if (!status)
        status = exchange_open(&gradient->push, config->servers, EXCHANGE_PUSH, &all, 1, err);
    if (!status)
        status = exchange_open(&gradient->pull, config->servers, EXCHANGE_PULL, &all, 1, err);
    return status;
}

int home_gradient_open(struct home_servers **out, const struct home_servers_config *config,
                       struct error *err) {
    struct gradient *gradient = mem_zeroed(1, sizeof *gradient);
    if (!gradient)
        return error_nomem(err);
    gradient->common.home.ops = &gradient_ops;
    gradient->common.sync = true;
    gradient->common.begin = gradient_begin;
    gradient->common.flush = gradient_flush;
    home_servers_init(&gradient->common, config);
    int status = open_parts(gradient, err);
    if (status)
        gradient_close(&gradient->common.home);
    else
        *out = &gradient->common;
    return status;
}
