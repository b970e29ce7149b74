// The limits that measurements are held against.
#ifndef ADAM_KERNELS_PORTABLE_PEAK_INC_H
#define ADAM_KERNELS_PORTABLE_PEAK_INC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef FAMILY_LANES
#define PEAK_LANES FAMILY_LANES
#else
#define PEAK_LANES 4
#endif

typedef float peak_vector __attribute__((vector_size(4 * PEAK_LANES)));

// More sums than two pipes with a latency of four cycles need, few enough for 16
// registers.
enum { PEAK_SUMS = 12 };

static uint64_t multiply_adds(float *sum, uint64_t rounds) {
    volatile float factor = 0.5f, term = 1.0f; // nothing that a compiler could know
    peak_vector a = (peak_vector){0} + factor, b = (peak_vector){0} + term, sums[PEAK_SUMS];
    for (int j = 0; j < PEAK_SUMS; j++)
        sums[j] = b * (float)j; // no two alike: they would be computed once
    for (uint64_t i = 0; i < rounds; i++)
#pragma GCC unroll 12
        for (int j = 0; j < PEAK_SUMS; j++)
            sums[j] = sums[j] * a + b;
    for (int j = 1; j < PEAK_SUMS; j++)
        sums[0] += sums[j];
    *sum = 0;
    for (int i = 0; i < PEAK_LANES; i++)
        *sum += sums[0][i];
    return rounds * PEAK_SUMS * PEAK_LANES;
}

static uint32_t read_all(const float *x, size_t n) {
    uint32_t all = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        all ^= bits;
    }
    return all;
}

#endif
