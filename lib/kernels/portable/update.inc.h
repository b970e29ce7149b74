// The update rules on shared weights: the additions that race on purpose.
#ifndef ADAM_KERNELS_PORTABLE_UPDATE_INC_H
#define ADAM_KERNELS_PORTABLE_UPDATE_INC_H

#include <math.h>
#include <stddef.h>

#include "core/hogwild.h"
#include "kernels/kernels.h"

// "Each thread computes weight updates and updates the shared model weights."
// (Adam 3.2.2) Load, add, store, without a lock: an addition that another thread
// overtakes is lost, "the weight updates are associative and commutative and
// [...] neural networks are resilient".
HOGWILD static void sgd(float *w, const float *g, size_t n, float rate, float decay) {
    for (size_t i = 0; i < n; i++)
        w[i] -= rate * (g[i] + decay * w[i]);
}

HOGWILD static void momentum_step(float *w, float *v, const float *g, size_t n, float rate,
                                  float momentum, float decay) {
    for (size_t i = 0; i < n; i++) {
        float step = momentum * v[i] + g[i] + decay * w[i];
        v[i] = step;
        w[i] -= rate * step;
    }
}

// "AdaGrad [...] uses a separate adaptive learning rate for each parameter",
// gamma / sqrt(sum of squared gradients) (DistBelief 4.1).
HOGWILD static void adagrad(float *w, float *s, const float *g, size_t n, float rate, float decay,
                            float epsilon) {
    for (size_t i = 0; i < n; i++) {
        float gradient = g[i] + decay * w[i];
        float sum = s[i] + gradient * gradient;
        s[i] = sum;
        w[i] -= rate * gradient / (sqrtf(sum) + epsilon);
    }
}

HOGWILD static void update(float *w, float *state, const float *g, size_t n,
                           const struct update *u) {
    switch (u->rule) {
    case RULE_SGD:
        sgd(w, g, n, u->rate, u->decay);
        return;
    case RULE_MOMENTUM:
        momentum_step(w, state, g, n, u->rate, u->momentum, u->decay);
        return;
    case RULE_ADAGRAD:
        adagrad(w, state, g, n, u->rate, u->decay, u->epsilon);
        return;
    }
}

#endif
