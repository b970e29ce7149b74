// The update rules on shared weights: the additions that race on purpose.
#ifndef ADAM_KERNELS_PORTABLE_UPDATE_INC_H
#define ADAM_KERNELS_PORTABLE_UPDATE_INC_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/hogwild.h"
#include "kernels/update.h"

// Gradients and the updates that they make, one after the other.
struct update_series {
    const float *g[UPDATES_MOST];
    struct update u[UPDATES_MOST];
};

// "Each thread computes weight updates and updates the shared model weights."
// (Adam 3.2.2) Load, add, store, without a lock: an addition that another thread
// overtakes is lost, "the weight updates are associative and commutative and
// [...] neural networks are resilient".
//
// `count` is a constant wherever this is inlined, so that weights and rates are in registers
// from the first step to the last.
__attribute__((always_inline)) static inline void sgd(float *w, struct update_series s, int count,
                                                      size_t n) {
    for (size_t i = 0; i < n; i++) {
        float weight = w[i];
#pragma GCC unroll 4
        for (int k = 0; k < count; k++)
            weight -= s.u[k].rate * (s.g[k][i] + s.u[k].decay * weight);
        w[i] = weight;
    }
}

// With `ahead` the weights go to where the velocity will have taken them: as Nesterov's.
__attribute__((always_inline)) static inline void
momentum_step(float *w, float *v, struct update_series s, int count, bool ahead, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float weight = w[i], step = v[i];
#pragma GCC unroll 4
        for (int k = 0; k < count; k++) {
            step = s.u[k].momentum * step + s.g[k][i] + s.u[k].decay * weight;
            float way = ahead ? s.g[k][i] + s.u[k].decay * weight + s.u[k].momentum * step : step;
            weight -= s.u[k].rate * way;
        }
        v[i] = step;
        w[i] = weight;
    }
}

// "AdaGrad [...] uses a separate adaptive learning rate for each parameter",
// gamma / sqrt(sum of squared gradients) (DistBelief 4.1); or the root of their mean of late.
__attribute__((always_inline)) static inline void adaptive(float *w, float *s, const float *g,
                                                           size_t n, float rate, float decay,
                                                           float epsilon, float kept, float fresh) {
    for (size_t i = 0; i < n; i++) {
        float gradient = g[i] + decay * w[i];
        float sum = kept * s[i] + fresh * (gradient * gradient);
        s[i] = sum;
        w[i] -= rate * gradient / (sqrtf(sum) + epsilon);
    }
}

HOGWILD static void adagrad(float *w, float *s, const float *g, size_t n, const struct update *u) {
    adaptive(w, s, g, n, u->rate, u->decay, u->epsilon, 1, 1);
}

HOGWILD static void rmsprop(float *w, float *s, const float *g, size_t n, const struct update *u) {
    adaptive(w, s, g, n, u->rate, u->decay, u->epsilon, u->beta2, u->fresh2);
}

// Means of gradients and of their squares (Kingma and Ba 2015, algorithm 1). `shrink` is what
// adamw's decay leaves of a weight, and 1 of adam's.
__attribute__((always_inline)) static inline void adam_step(float *w, float *v, float *s,
                                                            const float *g, size_t n,
                                                            const struct update *u, float decay,
                                                            float shrink) {
    for (size_t i = 0; i < n; i++) {
        float gradient = g[i] + decay * w[i];
        float mean = u->momentum * v[i] + u->fresh * gradient;
        float square = u->beta2 * s[i] + u->fresh2 * (gradient * gradient);
        v[i] = mean;
        s[i] = square;
        w[i] = shrink * w[i] - u->step * mean / (u->root * sqrtf(square) + u->epsilon);
    }
}

HOGWILD static void adam(float *w, float *v, const float *g, size_t n, const struct update *u) {
    const struct update of = *u; // no store below changes it
    if (u->rule == RULE_ADAM)
        adam_step(w, v, v + u->second, g, n, &of, of.decay, 1);
    else
        adam_step(w, v, v + u->second, g, n, &of, 0, 1 - of.rate * of.decay);
}

HOGWILD static void update(float *w, float *state, const float *g, size_t n,
                           const struct update *u) {
    struct update_series one = {{g}, {*u}};
    switch (u->rule) {
    case RULE_SGD:
        sgd(w, one, 1, n);
        return;
    case RULE_MOMENTUM:
        momentum_step(w, state, one, 1, false, n);
        return;
    case RULE_NESTEROV:
        momentum_step(w, state, one, 1, true, n);
        return;
    case RULE_ADAGRAD:
        adagrad(w, state, g, n, u);
        return;
    case RULE_RMSPROP:
        rmsprop(w, state, g, n, u);
        return;
    case RULE_ADAM:
    case RULE_ADAMW:
        adam(w, state, g, n, u);
        return;
    }
}

#endif
