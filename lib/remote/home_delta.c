// The home of deltas as the loop and its owner see it.
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "remote/home_delta_internal.h"

// --- the loop's view ------------------------------------------------------------------

static struct home *local_of(struct home *home) {
    return ((struct delta *)home)->local;
}

static float delta_rate(struct home *home, float rate) {
    struct delta *delta = (struct delta *)home;
    float taken = home_servers_rate(&delta->common, rate) * atomic_load(&delta->length);
    if (atomic_load_explicit(&delta->rate, memory_order_relaxed) != taken)
        atomic_store_explicit(&delta->rate, taken, memory_order_relaxed);
    return taken;
}

static const float *delta_weights(struct home *home, int thread) {
    struct home *local = local_of(home);
    return local->ops->weights(local, thread);
}

static void delta_add(struct home *home, int thread, const struct layer *layer, struct span span,
                      const float *gradient, float rate) {
    struct home *local = local_of(home);
    struct delta_factors *factors = ((struct delta *)home)->factors;
    if (factors)
        delta_factors_spoil(factors, layer);
    local->ops->add(local, thread, layer, span, gradient, delta_rate(home, rate));
}

static bool delta_takes_product(const struct home *home, const struct layer *layer, bool sync) {
    const struct home *local = ((const struct delta *)home)->local;
    return local->products->takes(local, layer, sync);
}

static void delta_add_product(struct home *home, int thread, const struct layer *layer,
                              const struct dense_errors *errors, const float *dbiases, int first,
                              float rate) {
    struct home *local = local_of(home);
    struct delta_factors *factors = ((struct delta *)home)->factors;
    rate = delta_rate(home, rate);
    if (factors)
        delta_factors_add(factors, layer, errors, rate);
    local->products->add(local, thread, layer, errors, dbiases, first, rate);
}

static void delta_enter(struct home *home, int thread, int samples, float rate) {
    struct home *local = local_of(home);
    if (local->meetings)
        local->meetings->enter(local, thread, samples, delta_rate(home, rate));
}

static bool delta_forward(struct home *home, int thread, const struct layer *layer, float *y,
                          const float *x, int n) {
    struct home *local = local_of(home);
    return local->meetings && local->meetings->forward(local, thread, layer, y, x, n);
}

// Before the thread waits: what it has added must be in the next push.
static void delta_leave(struct home *home, int thread) {
    struct home *local = local_of(home);
    if (local->meetings)
        local->meetings->leave(local, thread);
    local->ops->settle(local, thread);
}

static uint64_t delta_clock(const struct home *home) {
    return atomic_load(&((const struct delta *)home)->clock);
}

// The servers have not answered for so long that the weights here would drift away from
// the others': wait for them. (exchange_wait names them.)
static void await_exchange(struct delta *delta, int thread) {
    struct home_servers *common = &delta->common;
    if (!delta_is_adrift(delta))
        return;
    delta_leave(&common->home, thread);
    gate_open(&delta->wanted); // it may be due by a distance that was shortened since
    double begun = clock_seconds();
    for (uint32_t seen = gate_look(&delta->over); delta_is_adrift(delta);
         seen = gate_look(&delta->over))
        gate_wait(&delta->over, seen, -1);
    home_servers_waited(common, clock_seconds() - begun);
}

static void delta_add_clock(struct home *home, int thread, int samples) {
    struct delta *delta = (struct delta *)home;
    struct home *local = delta->local;
    local->ops->add_clock(local, thread, samples);
    atomic_fetch_add(&delta->samples, (uint64_t)samples);
    uint64_t now = atomic_fetch_add(&delta->clock, 1) + 1;
    if (now >= atomic_load(&delta->due))
        gate_open(&delta->wanted);
    await_exchange(delta, thread);
}

static void delta_settle(struct home *home, int thread) {
    struct home *local = local_of(home);
    local->ops->settle(local, thread);
}

static void delta_close(struct home *home) {
    struct delta *delta = (struct delta *)home;
    atomic_store(&delta->closing, true);
    gate_open(&delta->wanted);
    if (delta->started)
        pthread_join(delta->thread, NULL);
    delta_factors_close(delta->factors);
    exchange_close(delta->push);
    exchange_close(delta->pull);
    if (delta->local)
        delta->local->ops->close(delta->local);
    free(delta->weights), free(delta->state), free(delta->base);
    free(delta->moved), free(delta->stamps);
    free(delta->growth.newest), free(delta->growth.pushes);
    home_servers_free(&delta->common);
    free(delta);
}

static const struct home_ops delta_ops = {
    .weights = delta_weights,
    .add = delta_add,
    .settle = delta_settle,
    .clock = delta_clock,
    .add_clock = delta_add_clock,
    .close = delta_close,
};

static const struct home_products delta_products = {
    .takes = delta_takes_product,
    .add = delta_add_product,
};

static const struct home_meetings delta_meetings = {
    .enter = delta_enter,
    .forward = delta_forward,
    .leave = delta_leave,
};

// --- the owner's view -----------------------------------------------------------------

static int delta_begin(struct home_servers *home, struct error *err) {
    struct delta *delta = (struct delta *)home;
    size_t n = home->config.model->parameter_count;
    if (!delta_fetch(delta))
        return home_servers_status(home, err);
    for (size_t i = 0; i < n; i++)
        delta->weights[i] = delta->base[i] = delta->moved[i];
    delta->arrived = false;
    delta_take_factors(delta); // there are none yet
    if (pthread_create(&delta->thread, NULL, delta_exchange_thread, delta))
        return error_set(err, STATUS_IO, "cannot start a thread to exchange weights");
    delta->started = true;
    return STATUS_OK;
}

static int delta_flush(struct home_servers *home, struct error *err) {
    struct delta *delta = (struct delta *)home;
    uint64_t wanted = atomic_fetch_add(&delta->flushes, 1) + 1;
    gate_open(&delta->wanted);
    for (uint32_t seen = gate_look(&delta->over);
         atomic_load(&delta->flushed) < wanted && !home_servers_status(home, NULL);
         seen = gate_look(&delta->over))
        gate_wait(&delta->over, seen, -1);
    return home_servers_status(home, err);
}

static void delta_hurry(struct home_servers *home) {
    struct delta *delta = (struct delta *)home;
    atomic_store(&delta->hurry, true);
    gate_open(&delta->wanted);
}

static void delta_change(struct home_servers *home) {
    struct delta *delta = (struct delta *)home;
    if (delta->factors)
        delta_factors_change(delta->factors);
}

static uint64_t delta_every(struct home_servers *home) {
    return delta_distance((struct delta *)home, &home->push_every);
}

static int open_arrays(struct delta *delta, struct error *err) {
    const struct home_servers_config *config = &delta->common.config;
    size_t n = config->model->parameter_count;
    size_t states = (size_t)optimizer_states(config->optimizer->rule);
    delta->weights = mem_floats(n);
    delta->base = mem_floats(n);
    delta->moved = mem_floats(n);
    delta->state = states ? mem_floats(states * n) : NULL;
    size_t shards = servers_shards(config->servers) + 1;
    delta->stamps = mem_zeroed(shards, sizeof *delta->stamps);
    delta->growth.newest = mem_zeroed(shards, sizeof *delta->growth.newest);
    delta->growth.pushes = mem_zeroed(shards, sizeof *delta->growth.pushes);
    if (delta->weights && delta->base && delta->moved && delta->stamps && delta->growth.newest &&
        delta->growth.pushes && (!states || delta->state))
        return STATUS_OK;
    return error_set(err, STATUS_IO, "out of memory for %zu weights and their differences", n);
}

static int open_local(struct delta *delta, struct error *err) {
    const struct home_servers_config *config = &delta->common.config;
    const struct home_config local = {
        .model = config->model,
        .optimizer = config->optimizer,
        .learners = &delta->common.sharers, // the state of the rule is this worker's
        .kernels = config->kernels,
        .parameters = delta->weights,
        .state = delta->state,
        .threads = config->threads,
        .batch = config->batch,
    };
    return home_for_threads(&delta->local, &local, err);
}

static int open_parts(struct delta *delta, struct error *err) {
    const struct home_servers_config *config = &delta->common.config;
    int status = open_arrays(delta, err);
    if (!status && !config->portion)
        status = delta_factors_open(&delta->factors, config, err);
    if (!status)
        status = home_servers_exchange(&delta->push, config, EXCHANGE_PUSH, err);
    if (!status)
        status = home_servers_exchange(&delta->pull, config, EXCHANGE_PULL, err);
    return status ? status : open_local(delta, err);
}

int home_delta_open(struct home_servers **out, const struct home_servers_config *config,
                    struct error *err) {
    struct delta *delta = mem_zeroed(1, sizeof *delta);
    if (!delta)
        return error_nomem(err);
    delta->common.home =
        (struct home){.ops = &delta_ops, .products = &delta_products, .meetings = &delta_meetings};
    delta->common.begin = delta_begin;
    delta->common.flush = delta_flush;
    delta->common.hurry = delta_hurry;
    delta->common.change = delta_change;
    delta->common.every = delta_every;
    atomic_store(&delta->length, 1);
    home_servers_init(&delta->common, config);
    int status = open_parts(delta, err);
    if (status)
        delta_close(&delta->common.home);
    else
        *out = &delta->common;
    return status;
}
