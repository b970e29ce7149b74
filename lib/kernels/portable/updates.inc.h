// Several steps of an update rule in one pass over shared weights. Those of rules with roots and
// divisions take a pass each: they would wait for those of the step before.
#ifndef ADAM_KERNELS_PORTABLE_UPDATES_INC_H
#define ADAM_KERNELS_PORTABLE_UPDATES_INC_H

#include "kernels/portable/update.inc.h"

#define STEPS(count)                                                                               \
    HOGWILD static void sgd_##count(float *w, const struct update_series *s, size_t n) {           \
        sgd(w, *s, count, n);                                                                      \
    }                                                                                              \
    HOGWILD static void momentum_##count(float *w, float *v, const struct update_series *s,        \
                                         size_t n) {                                               \
        momentum_step(w, v, *s, count, false, n);                                                  \
    }                                                                                              \
    HOGWILD static void nesterov_##count(float *w, float *v, const struct update_series *s,        \
                                         size_t n) {                                               \
        momentum_step(w, v, *s, count, true, n);                                                   \
    }
STEPS(2)
STEPS(3)
STEPS(4)
#undef STEPS

static bool is_linear(enum rule rule) {
    return rule == RULE_SGD || rule == RULE_MOMENTUM || rule == RULE_NESTEROV;
}

// How many of the first updates take one pass.
static int count_alike(const struct update *u, int count) {
    int alike = 1, most = is_linear(u->rule) ? UPDATES_MOST : 1;
    while (alike < count && alike < most && u[alike].rule == u->rule)
        alike++;
    return alike;
}

typedef void sgd_steps(float *w, const struct update_series *s, size_t n);
typedef void momentum_steps(float *w, float *v, const struct update_series *s, size_t n);

// Two to UPDATES_MOST steps of one linear rule.
static void updates_at_once(float *w, float *state, const float *const *g, const struct update *u,
                            int count, size_t n) {
    static sgd_steps *const sgd_of[] = {sgd_2, sgd_3, sgd_4};
    static momentum_steps *const momentum_of[][UPDATES_MOST - 1] = {
        {momentum_2, momentum_3, momentum_4}, {nesterov_2, nesterov_3, nesterov_4}};
    struct update_series steps;
    for (int k = 0; k < count; k++) {
        steps.g[k] = g[k];
        steps.u[k] = u[k];
    }
    if (u->rule == RULE_SGD)
        sgd_of[count - 2](w, &steps, n);
    else
        momentum_of[u->rule == RULE_NESTEROV][count - 2](w, state, &steps, n);
}

static void updates(float *w, float *state, const float *const *g, const struct update *u,
                    int count, size_t n) {
    for (int taken; count > 0; count -= taken, g += taken, u += taken) {
        taken = count_alike(u, count);
        if (taken > 1)
            updates_at_once(w, state, g, u, taken, n);
        else
            update(w, state, *g, n, u);
    }
}

#endif
