// The largest magnitude of a plain vector.
#ifndef ADAM_KERNELS_PORTABLE_LARGEST_INC_H
#define ADAM_KERNELS_PORTABLE_LARGEST_INC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// The bits of floats without their sign are ordered as their magnitudes are, with
// infinity above all numbers and NaN above infinity.
static inline uint32_t larger_bits(uint32_t most, const float *x) {
    uint32_t bits;
    memcpy(&bits, x, sizeof bits);
    bits &= 0x7fffffffu;
    return bits > most ? bits : most;
}

// Four quarters side by side: a single stream of reads leaves memory half idle.
static float largest(const float *x, size_t n) {
    size_t quarter = n / 4;
    uint32_t a = 0, b = 0, c = 0, d = 0;
    for (size_t i = 0; i < quarter; i++) {
        a = larger_bits(a, x + i);
        b = larger_bits(b, x + quarter + i);
        c = larger_bits(c, x + 2 * quarter + i);
        d = larger_bits(d, x + 3 * quarter + i);
    }
    for (size_t i = 4 * quarter; i < n; i++)
        a = larger_bits(a, x + i);
    a = a > b ? a : b;
    c = c > d ? c : d;
    a = a > c ? a : c;
    float magnitude;
    memcpy(&magnitude, &a, sizeof magnitude);
    return magnitude;
}

#endif
