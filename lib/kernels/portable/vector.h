// Plain vectors.
#ifndef ADAM_KERNELS_PORTABLE_VECTOR_H
#define ADAM_KERNELS_PORTABLE_VECTOR_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

// The bits of floats without their sign are ordered as their magnitudes are, with
// infinity above all numbers and NaN above infinity.
static float largest(const float *x, size_t n) {
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffffu;
        most = bits > most ? bits : most;
    }
    float magnitude;
    memcpy(&magnitude, &most, sizeof magnitude);
    return magnitude;
}

static bool all_finite(const float *x, size_t n) {
    return isfinite(largest(x, n));
}

#endif
