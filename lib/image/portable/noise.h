// The loops of struct noise_rows, compiled once for each family of processors and
// vectorised by the compiler, for which they call nothing.
#ifndef ADAM_IMAGE_PORTABLE_NOISE_H
#define ADAM_IMAGE_PORTABLE_NOISE_H

#include "image/portable/exact.h"

#include <math.h>
#include <string.h>

#include "image/noise_rows.h"

// ln x for normal x > 0, to 1e-7: x = m 2^n with m within 2^-1/2..2^1/2, and
// ln m = 2 artanh s with s = (m - 1) / (m + 1), |s| < 0.172.
static inline float logarithm(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t n = (bits - 0x3f3504f3) >> 23; // the bits of 2^-1/2: rounds the exponent
    bits -= n * (1 << 23);
    float m;
    memcpy(&m, &bits, sizeof m);
    float s = (m - 1) / (m + 1), t = s * s;
    float series = 1 + t * (1.0f / 3 + t * (1.0f / 5 + t * (1.0f / 7 + t * (1.0f / 9))));
    return 2 * s * series + (float)n * 0.693147181f;
}

// cos and sin of an angle in quarter turns within -1/2..1/2, by their Taylor series.
static inline float cosine(float quarter) {
    float x = quarter * 1.57079633f, t = x * x;
    return 1 - t * (1.0f / 2 - t * (1.0f / 24 - t * (1.0f / 720 - t * (1.0f / 40320))));
}

static inline float sine(float quarter) {
    float x = quarter * 1.57079633f, t = x * x;
    return x * (1 - t * (1.0f / 6 - t * (1.0f / 120 - t * (1.0f / 5040 - t * (1.0f / 362880)))));
}

// Word i gives the radius and word i + HALF the angle of a point in the plane; its
// coordinates are normal numbers i and i + HALF.
static void normal(float *restrict to, const uint32_t *restrict words) {
    enum { HALF = NOISE_BLOCK / 2 };
    for (int i = 0; i < HALF; i++) {
        float u = (float)((int32_t)(words[i] >> 8) + 1) * 0x1p-24f; // (0, 1]
        float radius = sqrtf(-2 * logarithm(u));
        // 2^24 is a full turn; an eighth is added, so that cutting gives the nearest quarter.
        int32_t angle = (int32_t)(words[i + HALF] >> 8) + (1 << 21);
        int32_t quadrant = (angle >> 22) & 3;
        float rest = (float)((angle & ((1 << 22) - 1)) - (1 << 21)) * 0x1p-22f;
        float c = cosine(rest), s = sine(rest);
        float x = quadrant & 1 ? s : c, y = quadrant & 1 ? c : s;
        to[i] = radius * (quadrant == 1 || quadrant == 2 ? -x : x);
        to[i + HALF] = radius * (quadrant >= 2 ? -y : y);
    }
}

static void add_u8(uint8_t *restrict pixels, const float *restrict noise, float scale, int n) {
    for (int i = 0; i < n; i++) {
        float v = (float)pixels[i] + scale * noise[i];
        v = v > 0 ? v : 0;
        v = v < 255 ? v : 255;
        pixels[i] = (uint8_t)(int32_t)(v + 0.5f);
    }
}

static void add_f32(float *restrict pixels, const float *restrict noise, float scale, int n) {
    for (int i = 0; i < n; i++)
        pixels[i] += scale * noise[i];
}

#endif
