// The loops of struct random_rows, compiled once for each family of processors and
// vectorised by the compiler, for which they call nothing.
#ifndef ADAM_CORE_PORTABLE_RANDOM_ROWS_INC_H
#define ADAM_CORE_PORTABLE_RANDOM_ROWS_INC_H

#include "core/portable/exact.inc.h"

#include <math.h>
#include <string.h>

#include "core/random_rows.h"

enum { LANES = RANDOM_GROUP / 4 }; // blocks, so that no multiplication waits for another

// A multiplication of Philox: the high and low words of factor * x.
static inline void multiply(uint32_t factor, const uint32_t *x, uint32_t *high, uint32_t *low) {
    for (int i = 0; i < LANES; i++) {
        uint64_t product = (uint64_t)factor * x[i];
        high[i] = (uint32_t)(product >> 32);
        low[i] = (uint32_t)product;
    }
}

static inline void group(uint32_t *restrict words, const uint32_t key[2],
                         const uint32_t counter[4]) {
    uint32_t x0[LANES], x1[LANES], x2[LANES], x3[LANES], k0 = key[0], k1 = key[1];
    for (uint32_t i = 0; i < LANES; i++)
        x0[i] = counter[0] + i, x1[i] = counter[1], x2[i] = counter[2], x3[i] = counter[3];
    for (int round = 0; round < 10; round++) {
        uint32_t high0[LANES], low0[LANES], high1[LANES], low1[LANES];
        multiply(0xD2511F53u, x0, high0, low0);
        multiply(0xCD9E8D57u, x2, high1, low1);
        for (int i = 0; i < LANES; i++) {
            x0[i] = high1[i] ^ x1[i] ^ k0, x1[i] = low1[i];
            x2[i] = high0[i] ^ x3[i] ^ k1, x3[i] = low0[i];
        }
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < LANES; i++, words += 4)
        words[0] = x0[i], words[1] = x1[i], words[2] = x2[i], words[3] = x3[i];
}

static void words(uint32_t *to, size_t groups, const uint32_t key[2], const uint32_t counter[4]) {
    uint32_t at[4] = {counter[0], counter[1], counter[2], counter[3]};
    for (size_t i = 0; i < groups; i++, at[0] += LANES, to += RANDOM_GROUP)
        group(to, key, at);
}

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
static void normals(float *restrict to, const uint32_t *restrict words) {
    enum { HALF = RANDOM_NORMALS / 2 };
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

#endif
