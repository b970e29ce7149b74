// "we access and update the shared model weights locally without using locks.
//  Each thread computes weight updates and updates the shared model weights."
//  (Adam 3.2.2)
#include <stdatomic.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "train/home.h"

struct local {
    struct home home;
    struct home_config config;
    _Atomic uint64_t clock;
};

static const float *local_weights(struct home *home, int thread) {
    (void)thread;
    return ((struct local *)home)->config.parameters;
}

static struct optimizer local_rule(const struct local *local) {
    return home_rule(&local->config, atomic_load(&local->clock) - local->config.since);
}

static void local_add(struct home *home, int thread, const struct layer *layer, struct span span,
                      const float *gradient, float rate) {
    struct local *local = (struct local *)home;
    const struct home_config *config = &local->config;
    const struct optimizer rule = local_rule(local);
    (void)thread;
    optimizer_apply(&rule, config->kernels, layer, span, config->parameters, config->state,
                    gradient, rate);
}

static void local_add_product(struct home *home, int thread, const struct layer *layer,
                              const struct dense_errors *errors, const float *dbiases, int first,
                              float rate) {
    struct local *local = (struct local *)home;
    const struct home_config *config = &local->config;
    const struct optimizer rule = local_rule(local);
    (void)thread;
    (void)first;
    optimizer_apply_product(&rule, config->kernels, layer, config->parameters, config->state,
                            errors, dbiases, rate);
}

// All updates are visible when they are added.
static void local_settle(struct home *home, int thread) {
    (void)home;
    (void)thread;
}

static uint64_t local_clock(const struct home *home) {
    return atomic_load(&((const struct local *)home)->clock);
}

static void local_add_clock(struct home *home, int thread, int samples) {
    (void)thread;
    (void)samples;
    atomic_fetch_add(&((struct local *)home)->clock, 1);
}

static void local_close(struct home *home) {
    free(home);
}

static const struct home_ops local_ops = {
    .weights = local_weights,
    .add = local_add,
    .settle = local_settle,
    .clock = local_clock,
    .add_clock = local_add_clock,
    .close = local_close,
};

static const struct home_products local_products = {
    .takes = home_applies_product,
    .add = local_add_product,
};

int home_local(struct home **out, const struct home_config *config, struct error *err) {
    struct local *local = mem_zeroed(1, sizeof *local);
    if (!local)
        return error_nomem(err);
    *local = (struct local){
        .home = {.ops = &local_ops, .products = &local_products},
        .config = *config,
        .clock = config->clock,
    };
    *out = &local->home;
    return STATUS_OK;
}
