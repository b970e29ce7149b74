// The largest magnitude of a plain vector.
#ifndef ADAM_KERNELS_PORTABLE_LARGEST_H
#define ADAM_KERNELS_PORTABLE_LARGEST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#endif
