// Dense layers as matrix products (FAMILY_GEMM), in all passes, for families without
// vector registers of their own.
#ifndef ADAM_KERNELS_PORTABLE_DENSE_PLAIN_INC_H
#define ADAM_KERNELS_PORTABLE_DENSE_PLAIN_INC_H

#include "kernels/portable/bias.inc.h"
#include "kernels/portable/dense_products.inc.h"

static void dense_products(float *y, const float *x, const float *weights, const float *biases,
                           int n, int units, int inputs, int first, float *scratch) {
    (void)first, (void)scratch;
    FAMILY_GEMM(false, true, n, units, inputs, 1, x, inputs, weights, inputs, 0, y, units);
    if (biases)
        bias_add(y, biases, n, units, 1);
}

static size_t dense_products_kept_size(int n, int units, int inputs) {
    (void)n, (void)units, (void)inputs;
    return 0;
}

static const char *dense_products_way(bool forward, int n) {
    (void)forward, (void)n;
    return "product";
}

static const struct dense_kernels dense_plain = {
    .gemm = FAMILY_GEMM,
    .forward = dense_products,
    .back_input = dense_products_back_input,
    .back_weights = dense_products_back_weights,
    .step = dense_products_step,
    .way = dense_products_way,
};

static const struct dense_kept_kernels dense_plain_kept = {.size = dense_products_kept_size};

#endif
