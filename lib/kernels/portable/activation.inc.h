// Activations and softmax.
#ifndef ADAM_KERNELS_PORTABLE_ACTIVATION_INC_H
#define ADAM_KERNELS_PORTABLE_ACTIVATION_INC_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/portable/bias.inc.h"
#include "kernels/portable/relu.inc.h"

// e^x to about 2 units in the last place, without branches so that it
// vectorises (libm's is a call a value): x = n ln2 + r, |r| <= ln2/2, a
// polynomial of degree 6 in r (its Taylor series, error < 1e-8 there), and n
// added to the exponent.
static inline float exponential(float x) {
    x = x > 88.0f ? 88.0f : x < -87.0f ? -87.0f : x;
    float shifted = x * 1.44269504f + 12582912.0f; // 1.5 * 2^23: rounds to a whole number
    float n = shifted - 12582912.0f;
    float r = x - n * 0.693145752f - n * 1.42860677e-6f; // ln2 in two parts
    float p = 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    // The low bits of `shifted` are n beside those of 1.5 * 2^23 itself, so no
    // conversion is needed, which a NaN would not survive.
    uint32_t bits;
    float power;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits - 0x4b400000u + 127) << 23;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

static void relu_back(float *dy, const float *y, size_t n) {
    for (size_t i = 0; i < n; i++)
        dy[i] = y[i] > 0 ? dy[i] : 0;
}

static void sigmoid(float *y, size_t n) {
    for (size_t i = 0; i < n; i++)
        y[i] = 1.0f / (1.0f + exponential(-y[i]));
}

static void sigmoid_back(float *dy, const float *y, size_t n) {
    for (size_t i = 0; i < n; i++)
        dy[i] *= y[i] * (1.0f - y[i]);
}

// tanh x = 1 - 2 / (e^2x + 1) loses digits near 0, where the series takes over.
static void hyperbolic_tangent(float *y, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float x = y[i], square = x * x;
        float series = x * (1.0f + square * (-1.0f / 3 + square * (2.0f / 15 - square * 17 / 315)));
        float exact = 1.0f - 2.0f / (exponential(2.0f * x) + 1.0f);
        y[i] = square < 0.01f ? series : exact;
    }
}

static void tanh_back(float *dy, const float *y, size_t n) {
    for (size_t i = 0; i < n; i++)
        dy[i] *= 1.0f - y[i] * y[i];
}

// The largest of n numbers, in 16 lanes, so that it vectorises.
static float row_most(const float *x, int n) {
    float lanes[16], most = x[0];
    int i = 0;
    if (n >= 16)
        memcpy(lanes, x, sizeof lanes);
    for (; i + 16 <= n; i += 16)
        for (int l = 0; l < 16; l++)
            lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
    for (int l = 0; l < i && l < 16; l++)
        most = lanes[l] > most ? lanes[l] : most;
    for (; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

static void softmax(float *y, int n, int m) {
    for (int i = 0; i < n; i++, y += m) {
        float most = row_most(y, m);
        for (int j = 0; j < m; j++)
            y[j] = exponential(y[j] - most);
        float share = 1.0f / row_sum(y, m);
        for (int j = 0; j < m; j++)
            y[j] *= share;
    }
}

#endif
