// "we access and update the shared model weights locally without using locks.
//  Each thread computes weight updates and updates the shared model weights."
//  (Adam 3.2.2)
#include <stdatomic.h>
#include <stdlib.h>

#include "core/mem.h"
#include "train/home.h"

struct local {
    struct home home;
    const struct model *model;
    const struct optimizer *optimizer;
    const struct kernels *kernels;
    float *parameters, *state;
    _Atomic uint64_t clock;
};

static const float *local_weights(struct home *home, int thread) {
    (void)thread;
    return ((struct local *)home)->parameters;
}

static void local_add(struct home *home, int thread, const struct layer *layer, struct span span,
                      const float *gradient, float rate) {
    struct local *local = (struct local *)home;
    (void)thread;
    optimizer_apply(local->optimizer, local->kernels, layer, span, local->parameters, local->state,
                    gradient, rate);
}

static void local_add_product(struct home *home, int thread, const struct layer *layer,
                              const struct dense_errors *errors, const float *dbiases, float rate) {
    struct local *local = (struct local *)home;
    (void)thread;
    optimizer_apply_product(local->optimizer, local->kernels, layer, local->parameters,
                            local->state, errors, dbiases, rate);
}

static uint64_t local_clock(const struct home *home) {
    return atomic_load(&((const struct local *)home)->clock);
}

static void local_add_clock(struct home *home, int thread) {
    (void)thread;
    atomic_fetch_add(&((struct local *)home)->clock, 1);
}

static void local_close(struct home *home) {
    free(home);
}

static const struct home_ops local_ops = {
    .weights = local_weights,
    .add = local_add,
    .add_product = local_add_product,
    .clock = local_clock,
    .add_clock = local_add_clock,
    .close = local_close,
};

int home_local(struct home **out, const struct model *model, const struct optimizer *optimizer,
               const struct kernels *kernels, float *parameters, float *state, uint64_t clock,
               struct error *err) {
    struct local *local = mem_zeroed(1, sizeof *local);
    if (!local)
        return error_nomem(err);
    *local = (struct local){
        .home = {&local_ops},
        .model = model,
        .optimizer = optimizer,
        .kernels = kernels,
        .parameters = parameters,
        .state = state,
        .clock = clock,
    };
    *out = &local->home;
    return STATUS_OK;
}
