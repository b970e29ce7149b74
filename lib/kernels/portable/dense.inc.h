// Dense layers for a family with vector registers: few samples stream, more are products in
// tiles.
#ifndef ADAM_KERNELS_PORTABLE_DENSE_INC_H
#define ADAM_KERNELS_PORTABLE_DENSE_INC_H

#include "kernels/portable/dense_forward.inc.h"
#include "kernels/portable/dense_products.inc.h"
#include "kernels/portable/dense_strassen.inc.h"
#include "kernels/portable/dense_tiles.inc.h"
#include "kernels/portable/stream.inc.h"

// Samples up to which a step streams: with more, strips keep the multipliers busy. And the forward
// pass.
enum {
    STREAM_STEP_MOST = FAMILY_REGISTERS == 32 ? 4 : 3,
    STREAM_FORWARD_MOST = LANES > 8 ? DENSE_STREAM_MOST : DENSE_STREAM_MOST_8,
};

// Near weights stream where samples leave a quarter of the lanes of their vectors empty, or are one
// vector that has fewer lanes than a panel needs sums, which would wait for each other.
static bool forward_streams(int n, int units, int inputs) {
    bool far = weights_far((size_t)units, (size_t)inputs);
    bool few = FAMILY_LANES < 2 * FAMILY_TILE && n <= LANES;
    return n <= STREAM_FORWARD_MOST && (far || few || 4 * n <= 3 * LANES * cuts(n, LANES));
}

static void dense(float *y, const float *x, const float *weights, const float *biases, int n,
                  int units, int inputs, int first, float *scratch) {
    if (forward_streams(n, units, inputs))
        FAMILY(dense_stream)(y, x, weights, biases, n, units, inputs, first);
    else
        dense_forward(y, x, weights, biases, n, units, inputs, first, scratch);
}

// Strips are of whole vectors, three at a time: fewer inputs are few of them.
static bool strips_pay(const struct dense_errors *e) {
    return e->inputs >= TILE_WIDTH;
}

static void dense_back_input(const struct dense_errors *e, const float *weights) {
    if (e->n <= STREAM_MOST)
        FAMILY(stream_back)(&(struct stream_back){.e = e, .work = WORK_ERRORS, .weights = weights});
    else if (strips_pay(e))
        dense_tiles_back_input(e, weights);
    else
        dense_products_back_input(e, weights);
}

static void dense_back_weights(float *dweights, const struct dense_errors *errors) {
    if (errors->n <= STREAM_MOST) {
        struct dense_errors e = *errors;
        e.dx = NULL;
        FAMILY(stream_back)(&(struct stream_back){.e = &e, .work = WORK_GRADIENT, .to = dweights});
    } else if (strips_pay(errors))
        dense_tiles_back_weights(dweights, errors);
    else
        dense_products_back_weights(dweights, errors);
}

static void dense_step(float *weights, float *state, const struct dense_errors *e,
                       const struct update *u) {
    if (e->n <= STREAM_STEP_MOST)
        FAMILY(stream_back)
    (&(struct stream_back){
        .e = e,
        .work = u->rule == RULE_SGD && e->dx ? WORK_STEP : WORK_GRADIENT,
        .weights = weights,
        .to = weights,
        .state = state,
        .update = u,
    });
    else if (u->rule == RULE_SGD || e->n <= DENSE_STEP_MOST) dense_tiles_step(weights, state, e, u);
    else dense_products_step(weights, state, e, u);
}

static const char *dense_way(bool forward, int n) {
    if (forward)
        return n <= STREAM_FORWARD_MOST ? "stream" : "panels";
    return n <= STREAM_STEP_MOST ? "stream" : "strips";
}

const struct dense_kernels FAMILY(dense) = {
    .gemm = gemm,
    .forward = dense,
    .back_input = dense_back_input,
    .back_weights = dense_back_weights,
    .step = dense_step,
    .way = dense_way,
};

#endif
