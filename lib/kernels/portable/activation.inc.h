// Activations and softmax.
#ifndef ADAM_KERNELS_PORTABLE_ACTIVATION_INC_H
#define ADAM_KERNELS_PORTABLE_ACTIVATION_INC_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/activations.h"
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

// e^x - 1, which loses digits near 0, where the series takes over.
static inline float exponential_less_one(float x) {
    float series = x * (1.0f + x * (0.5f + x * (1.0f / 6 + x * (1.0f / 24 + x * (1.0f / 120)))));
    float exact = exponential(x) - 1.0f;
    return x * x < 0.01f ? series : exact;
}

static inline float sigmoid_of(float x) {
    return 1.0f / (1.0f + exponential(-x));
}

// tanh x = 1 - 2 / (e^2x + 1) loses digits near 0, where the series takes over.
static inline float tanh_of(float x) {
    float square = x * x;
    float series = x * (1.0f + square * (-1.0f / 3 + square * (2.0f / 15 - square * 17 / 315)));
    float exact = 1.0f - 2.0f / (exponential(2.0f * x) + 1.0f);
    return square < 0.01f ? series : exact;
}

// ln(1 + e^x) is x, if that is positive, and ln(1 + z), z = e^-|x|: twice the area tangent of
// s = z / (2 + z), at most 1/3, by its series.
static inline float softplus_of(float x) {
    float z = exponential(x < 0 ? x : -x), s = z / (2.0f + z), square = s * s;
    float p = 1.0f / 13;
    p = p * square + 1.0f / 11;
    p = p * square + 1.0f / 9;
    p = p * square + 1.0f / 7;
    p = p * square + 1.0f / 5;
    p = p * square + 1.0f / 3;
    p = p * square + 1.0f;
    return (x < 0 ? 0 : x) + 2.0f * s * p;
}

// The share of the normal distribution below x, to 4e-7 of it: of 1 - erf(z) = t e^(-z^2 + P(t)),
// t = 1 / (1 + z / 2), z = |x| / sqrt(2), the polynomial P is fitted at Chebyshev's points for t
// from 2/11 to 1.
static inline float normal_share(float x) {
    float z = (x < 0 ? -x : x) * 0.707106781f, t = 1.0f / (1.0f + 0.5f * z);
    float p = 0.0915815948f;
    p = p * t - 0.618558248f;
    p = p * t + 1.60665785f;
    p = p * t - 1.93266001f;
    p = p * t + 0.956339633f;
    p = p * t - 0.280043864f;
    p = p * t + 0.450326291f;
    p = p * t + 0.991463014f;
    p = p * t - 1.26510638f;
    float beyond = 0.5f * t * exponential(p - z * z);
    return x < 0 ? beyond : 1.0f - beyond;
}

static inline float normal_density(float x) {
    return 0.398942280f * exponential(-0.5f * x * x);
}

static inline float gelu_slope(float x) {
    return normal_share(x) + x * normal_density(x);
}

static inline float silu_slope(float x) {
    float share = sigmoid_of(x);
    return share * (1.0f + x * (1.0f - share));
}

static inline float hardswish_of(float x) {
    return x < -3 ? 0 : x > 3 ? x : x * (x + 3) * (1.0f / 6);
}

static inline float hardswish_slope(float x) {
    return x < -3 ? 0 : x > 3 ? 1 : (2 * x + 3) * (1.0f / 6);
}

// An activation of x = y[i], and the factor of dy[i] from f = from[i].
#define ACTIVATION(name, of_x, factor)                                                             \
    static void act_##name(float *y, size_t n, float slope) {                                      \
        (void)slope;                                                                               \
        for (size_t i = 0; i < n; i++) {                                                           \
            float x = y[i];                                                                        \
            y[i] = of_x;                                                                           \
        }                                                                                          \
    }                                                                                              \
    static void act_##name##_back(float *dy, const float *from, size_t n, float slope) {           \
        (void)slope;                                                                               \
        for (size_t i = 0; i < n; i++) {                                                           \
            float f = from[i];                                                                     \
            dy[i] *= factor;                                                                       \
        }                                                                                          \
    }

// clang-format off
ACTIVATION(tanh, tanh_of(x), 1.0f - f * f)
ACTIVATION(sigmoid, sigmoid_of(x), f * (1.0f - f))
ACTIVATION(leaky, x < 0 ? slope * x : x, (f > 0 ? 1 : slope))
ACTIVATION(elu, x < 0 ? exponential_less_one(x) : x, (f > 0 ? 1 : f + 1))
ACTIVATION(softplus, softplus_of(x), -exponential_less_one(-f))
ACTIVATION(relu6, x < 0 ? 0 : x > 6 ? 6 : x, (f > 0 && f < 6 ? 1 : 0))
ACTIVATION(gelu, x * normal_share(x), gelu_slope(f))
ACTIVATION(silu, x * sigmoid_of(x), silu_slope(f))
ACTIVATION(hardswish, hardswish_of(x), hardswish_slope(f))
// clang-format on
#undef ACTIVATION

static void act_relu(float *y, size_t n, float slope) {
    (void)slope;
    relu(y, n);
}

static void act_relu_back(float *dy, const float *y, size_t n, float slope) {
    (void)slope;
    for (size_t i = 0; i < n; i++)
        dy[i] = y[i] > 0 ? dy[i] : 0;
}

// By enum act; nothing is to be done for the linear one.
// clang-format off
#define ACTIVATIONS {                                                                              \
    [ACT_RELU] = {act_relu, act_relu_back},                                                        \
    [ACT_TANH] = {act_tanh, act_tanh_back},                                                        \
    [ACT_SIGMOID] = {act_sigmoid, act_sigmoid_back},                                               \
    [ACT_LEAKY] = {act_leaky, act_leaky_back},                                                     \
    [ACT_ELU] = {act_elu, act_elu_back},                                                           \
    [ACT_SOFTPLUS] = {act_softplus, act_softplus_back},                                            \
    [ACT_RELU6] = {act_relu6, act_relu6_back},                                                     \
    [ACT_GELU] = {act_gelu, act_gelu_back},                                                        \
    [ACT_SILU] = {act_silu, act_silu_back},                                                        \
    [ACT_HARDSWISH] = {act_hardswish, act_hardswish_back},                                         \
}
// clang-format on

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
