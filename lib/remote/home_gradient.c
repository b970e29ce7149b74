// The home of gradients as the loop sees it, its beginning and its end.
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/invariant.h"
#include "core/mem.h"
#include "kernels/dense.h"
#include "kernels/kernels.h"
#include "remote/home_factors.h"
#include "remote/home_gradient_internal.h"

// --- the loop's view ------------------------------------------------------------------

static const float *gradient_weights(struct home *home, int thread) {
    struct gradient *gradient = (struct gradient *)home;
    (void)thread;
    gradient_pull_when_due(gradient);
    return gradient->weights[gradient->here];
}

// mean += share (values - mean)
static void add_to_mean(float *restrict mean, const float *restrict values, size_t n, float share) {
    for (size_t i = 0; i < n; i++)
        mean[i] += share * (values[i] - mean[i]);
}

// The servers have the rule and the rate of the push: the gradient is only kept. A home that failed
// pushes nothing any more, and what it has may be on its way for ever.
static void gradient_add(struct home *home, int thread, const struct layer *layer, struct span span,
                         const float *values, float rate) {
    struct gradient *gradient = (struct gradient *)home;
    float *filled = gradient->gradient[gradient->filled];
    (void)thread;
    if (home_servers_status(&gradient->common, NULL))
        return;
    filled += layer->weights.offset + span.first;
    if (gradient->group.batches == 0)
        memcpy(filled, values + span.first, span.n * sizeof *values);
    else
        add_to_mean(filled, values + span.first, span.n,
                    gradient_batch_share(&gradient->group, rate));
}

static bool gradient_takes_product(const struct home *home, const struct layer *layer, bool sync) {
    const struct gradient *gradient = (const struct gradient *)home;
    return sync && gradient->taken && gradient->taken[layer->index];
}

// The product is kept as its factors. The gradient of the biases follows from them. Of a home that
// failed the group may be full, or have no memory.
static void gradient_add_product(struct home *home, int thread, const struct layer *layer,
                                 const struct dense_errors *errors, const float *dbiases, int first,
                                 float rate) {
    struct gradient *gradient = (struct gradient *)home;
    const struct kernels *kernels = gradient->common.config.kernels;
    (void)dbiases;
    (void)rate;
    if (errors->dx)
        kernels->dense->back_input(errors, gradient_weights(home, thread) + layer->weights.offset);
    if (home_servers_status(&gradient->common, NULL))
        return;
    struct layer_factors *factors = gradient->factors;
    size_t n = (size_t)errors->n, from = (size_t)(gradient->group.samples + first);
    size_t units = (size_t)errors->units, inputs = (size_t)errors->inputs;
    while (factors->layer != layer)
        factors++;
    INVARIANT(from + n <= factors->room[gradient->filled]);
    memcpy(factors->errors[gradient->filled] + from * units, errors->dy, n * units * sizeof(float));
    memcpy(factors->inputs[gradient->filled] + from * inputs, errors->x,
           n * inputs * sizeof(float));
}

// Nothing to do: the threads are synchronous, and gradient_flush pushes what is left.
static void gradient_settle(struct home *home, int thread) {
    (void)home;
    (void)thread;
}

static uint64_t gradient_clock(const struct home *home) {
    return atomic_load(&((const struct gradient *)home)->clock);
}

static void gradient_add_clock(struct home *home, int thread, int samples) {
    (void)thread;
    (void)samples;
    atomic_fetch_add(&((struct gradient *)home)->clock, 1);
}

static void close_factors(struct layer_factors *factors) {
    exchange_close(factors->push);
    for (int i = 0; i < 2; i++)
        free(factors->errors[i]), free(factors->inputs[i]);
}

static void gradient_close(struct home *home) {
    struct gradient *gradient = (struct gradient *)home;
    exchange_close(gradient->push);
    exchange_close(gradient->turn);
    exchange_close(gradient->pull);
    for (int i = 0; i < gradient->factor_count; i++)
        close_factors(&gradient->factors[i]);
    free(gradient->factors);
    free(gradient->taken);
    free(gradient->group.stamps);
    free(gradient->group.rates);
    for (int i = 0; i < 2; i++)
        free(gradient->weights[i]), free(gradient->gradient[i]), free(gradient->stamps[i]);
    home_servers_free(&gradient->common);
    free(gradient);
}

static const struct home_ops gradient_ops = {
    .weights = gradient_weights,
    .add = gradient_add,
    .settle = gradient_settle,
    .clock = gradient_clock,
    .add_clock = gradient_add_clock,
    .close = gradient_close,
};

static const struct home_products gradient_products = {
    .takes = gradient_takes_product,
    .add = gradient_add_product,
};

// --- beginning ------------------------------------------------------------------------

static void gradient_hurry(struct home_servers *home) {
    atomic_store(&((struct gradient *)home)->hurry, true);
}

static int open_arrays(struct gradient *gradient, struct error *err) {
    const struct home_servers_config *config = &gradient->common.config;
    size_t n = config->model->parameter_count, shards = servers_shards(config->servers);
    gradient->there = gradient_overlaps(config);
    for (int i = 0; i <= gradient->there; i++) {
        gradient->weights[i] = mem_floats(n);
        gradient->stamps[i] = mem_zeroed(shards + 1, sizeof *gradient->stamps[i]);
    }
    gradient->gradients = gradient_is_hardsync(config) ? 1 : 2;
    INVARIANT(gradient->there + 1 + gradient->gradients ==
              protocol_copies(config->protocol, PUSH_GRADIENT, config->overlap));
    for (int i = 0; i < gradient->gradients; i++)
        gradient->gradient[i] = mem_floats(n);
    gradient->group.stamps = mem_zeroed(shards + 1, sizeof *gradient->group.stamps);
    int there = gradient->there;
    if (gradient->group.stamps && gradient->gradient[0] &&
        gradient->gradient[gradient->gradients - 1] && gradient->weights[0] &&
        gradient->stamps[0] && gradient->weights[there] && gradient->stamps[there])
        return STATUS_OK;
    return error_set(err, STATUS_IO, "out of memory for %zu weights and gradients, %d times", n,
                     gradient->there + 1 + gradient->gradients);
}

static int open_layer(struct layer_factors *factors, const struct home_servers_config *config,
                      const struct layer *layer, struct error *err) {
    const struct span span = {layer->weights.offset, optimizer_all(layer).n};
    factors->layer = layer;
    return exchange_open(&factors->push, config->servers, EXCHANGE_PUSH, &span, 1, err);
}

// The length of a layer's gradient, which clipping needs, is not known from its factors.
static int open_factors(struct gradient *gradient, struct error *err) {
    const struct home_servers_config *config = &gradient->common.config;
    const struct model *model = config->model;
    size_t layers = (size_t)model->layer_count;
    gradient->taken = mem_zeroed(layers, sizeof *gradient->taken);
    gradient->factors = mem_zeroed(layers, sizeof *gradient->factors);
    if (!gradient->taken || !gradient->factors)
        return error_nomem(err);
    const char *choice = config->optimizer->clip > 0 ? "none" : config->factors;
    uint64_t samples = atomic_load(&gradient->common.push_every) * (uint64_t)config->batch;
    int most = samples < INT_MAX ? (int)samples : INT_MAX;
    int status = factors_choose(gradient->taken, model, choice, most, err);
    for (int i = 0; !status && i < model->layer_count; i++)
        if (gradient->taken[i])
            status = open_layer(&gradient->factors[gradient->factor_count++], config,
                                &model->layers[i], err);
    return status;
}

static int open_push(struct gradient *gradient, struct error *err) {
    const struct home_servers_config *config = &gradient->common.config;
    if (config->portion)
        return home_servers_exchange(&gradient->push, config, EXCHANGE_PUSH, err);
    struct span *spans = mem_array((size_t)config->model->layer_count, sizeof *spans);
    if (!spans)
        return error_nomem(err);
    size_t count = factors_rest(gradient->taken, config->model, spans);
    int status = exchange_open(&gradient->push, config->servers, EXCHANGE_PUSH, spans, count, err);
    free(spans);
    return status;
}

static int open_parts(struct gradient *gradient, struct error *err) {
    const struct home_servers_config *config = &gradient->common.config;
    int status = open_arrays(gradient, err);
    if (!status && !config->portion)
        status = open_factors(gradient, err);
    if (!status)
        status = gradient_begin_group(gradient, err);
    if (!status)
        status = open_push(gradient, err);
    if (!status)
        status = home_servers_exchange(&gradient->turn, config, EXCHANGE_PUSH, err);
    if (!status)
        status = home_servers_exchange(&gradient->pull, config, EXCHANGE_PULL, err);
    return status;
}

int home_gradient_open(struct home_servers **out, const struct home_servers_config *config,
                       struct error *err) {
    struct gradient *gradient = mem_zeroed(1, sizeof *gradient);
    if (!gradient)
        return error_nomem(err);
    gradient->common.home = (struct home){.ops = &gradient_ops, .products = &gradient_products};
    gradient->common.sync = true;
    gradient->common.begin = gradient_begin;
    gradient->common.step = gradient_step;
    gradient->common.flush = gradient_flush;
    gradient->common.hurry = gradient_hurry;
    gradient->common.every = gradient_every;
    home_servers_init(&gradient->common, config);
    int status = open_parts(gradient, err);
    if (status)
        gradient_close(&gradient->common.home);
    else
        *out = &gradient->common;
    return status;
}
