// The loops of struct floats_rows, compiled once for each family of processors
// and vectorised by the compiler.
#ifndef ADAM_IMAGE_PORTABLE_FLOATS_INC_H
#define ADAM_IMAGE_PORTABLE_FLOATS_INC_H

#include "core/portable/exact.inc.h"

#include "image/floats_rows.h"

static void linear_u8(float *restrict to, const uint8_t *restrict from, const float *restrict gain,
                      const float *restrict offset, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = (float)from[i] * gain[i] + offset[i];
}

static void linear_f32(float *restrict to, const float *restrict from, const float *restrict gain,
                       const float *restrict offset, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = from[i] * gain[i] + offset[i];
}

static void split_u8(float *restrict r, float *restrict g, float *restrict b,
                     const uint8_t *restrict from, size_t n) {
    for (size_t i = 0; i < n; i++)
        r[i] = (float)from[3 * i], g[i] = (float)from[3 * i + 1], b[i] = (float)from[3 * i + 2];
}

static void split_f32(float *restrict r, float *restrict g, float *restrict b,
                      const float *restrict from, size_t n) {
    for (size_t i = 0; i < n; i++)
        r[i] = from[3 * i], g[i] = from[3 * i + 1], b[i] = from[3 * i + 2];
}

#endif
