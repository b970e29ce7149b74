// The backward passes of dense layers as matrix products (FAMILY_GEMM): for any
// mini-batch; the faster families take them where many samples share each weight.
#ifndef ADAM_KERNELS_PORTABLE_DENSE_PRODUCTS_INC_H
#define ADAM_KERNELS_PORTABLE_DENSE_PRODUCTS_INC_H

#include <stddef.h>

#include "kernels/dense.h"
#include "kernels/portable/update.inc.h"

enum {
    PRODUCTS_BLOCK = 64 * 1024, // weights that are still in the L2 cache for the step
    PRODUCTS_ROW = 1024,        // of them in a row
    PRODUCTS_PIECE = 8 * 1024,  // gradients that stay in the L1 cache until they are applied
};

static void dense_products_back_input(const struct dense_errors *e, const float *weights) {
    FAMILY_GEMM(false, false, e->n, e->inputs, e->units, 1, e->dy, e->units, weights, e->inputs,
                e->add ? 1 : 0, e->dx, e->inputs);
}

static void dense_products_back_weights(float *dweights, const struct dense_errors *e) {
    FAMILY_GEMM(true, false, e->units, e->inputs, e->n, 1, e->dy, e->units, e->x, e->inputs, 0,
                dweights, e->inputs);
}

// The step for some rows and columns of the weights: piece by piece the gradient
// is made and applied.
static void products_apply(float *weights, float *state, const struct dense_errors *e, int units,
                           int first, int count, const struct update *u) {
    float gradient[PRODUCTS_PIECE];
    int rows = PRODUCTS_PIECE / count;
    for (int r = 0; r < units; r += rows) {
        int some = units - r < rows ? units - r : rows;
        FAMILY_GEMM(true, false, some, count, e->n, 1, e->dy + r, e->units, e->x + first, e->inputs,
                    0, gradient, count);
        for (int i = 0; i < some; i++) {
            size_t at = (size_t)(r + i) * (size_t)e->inputs + (size_t)first;
            update(weights + at, state ? state + at : NULL, gradient + i * count, (size_t)count, u);
        }
    }
}

// The step of units [first, last), by blocks of weights small enough to be in the cache
// still when the error gradients that they cause are summed up and they may change.
static void products_step_units(float *weights, float *state, const struct dense_errors *errors,
                                const struct update *u, int first, int last) {
    struct dense_errors e = *errors;
    int width = e.inputs < PRODUCTS_ROW ? e.inputs : PRODUCTS_ROW, rows = PRODUCTS_BLOCK / width;
    for (int r = first; r < last; r += rows) {
        int some = last - r < rows ? last - r : rows;
        for (int k = 0; k < e.inputs; k += width) {
            int count = e.inputs - k < width ? e.inputs - k : width;
            size_t at = (size_t)r * (size_t)e.inputs + (size_t)k;
            if (e.dx)
                FAMILY_GEMM(false, false, e.n, count, some, 1, errors->dy + r, e.units,
                            weights + at, e.inputs, r == e.first && !e.add ? 0 : 1, e.dx + k,
                            e.inputs);
            e.dy = errors->dy + r;
            products_apply(weights + (size_t)r * (size_t)e.inputs,
                           state ? state + (size_t)r * (size_t)e.inputs : NULL, &e, some, k, count,
                           u);
        }
    }
}

static void dense_products_step(float *weights, float *state, const struct dense_errors *errors,
                                const struct update *u) {
    products_step_units(weights, state, errors, u, errors->first, errors->units);
    products_step_units(weights, state, errors, u, 0, errors->first);
}

#endif
