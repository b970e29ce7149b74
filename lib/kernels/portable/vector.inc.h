// Plain vectors.
#ifndef ADAM_KERNELS_PORTABLE_VECTOR_INC_H
#define ADAM_KERNELS_PORTABLE_VECTOR_INC_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernels/portable/largest.inc.h"

static void add(float *y, const float *a, const float *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

static void add_relu(float *y, const float *a, const float *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float sum = a[i] + b[i];
        y[i] = sum < 0 ? 0 : sum; // what is no number stays none
    }
}

static void add_above(float *y, const float *a, const float *b, const float *mask, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float sum = a[i] + b[i];
        y[i] = mask[i] > 0 ? sum : 0;
    }
}

static void multiply(float *y, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        y[i] *= x[i];
}

static void axpy(float *y, const float *x, size_t n, float a) {
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

static double sum_squares(const float *x, size_t n) {
    double lanes[8] = {0}, sum = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t l = 0; l < 8; l++)
            lanes[l] += (double)x[i + l] * (double)x[i + l];
    for (; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    for (size_t l = 0; l < 8; l++)
        sum += lanes[l];
    return sum;
}

static bool all_finite(const float *x, size_t n) {
    return isfinite(largest(x, n));
}

#endif
