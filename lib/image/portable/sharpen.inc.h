// The loops of struct sharpen_rows, compiled once for each family of processors and
// vectorised by the compiler, for which they call nothing.
#ifndef ADAM_IMAGE_PORTABLE_SHARPEN_INC_H
#define ADAM_IMAGE_PORTABLE_SHARPEN_INC_H

#include "core/portable/exact.inc.h"

#include "image/sharpen_rows.h"

// A pixel and its eight neighbours weigh this much together.
#define SHARPEN_SUM 13.0f
#define SHARPEN_MIDDLE 5

static void sharpen_bytes(uint8_t *restrict to, const uint8_t *restrict from, long stride,
                          long channels, float factor, int n) {
    const uint8_t *above = from - stride, *below = from + stride;
    float others = (1 - factor) / SHARPEN_SUM;
    for (int i = 0; i < n; i++) {
        int sum = above[i - channels] + above[i] + above[i + channels] + from[i - channels] +
                  SHARPEN_MIDDLE * from[i] + from[i + channels] + below[i - channels] + below[i] +
                  below[i + channels];
        float v = others * (float)sum + factor * (float)from[i];
        v = v > 0 ? v : 0;
        v = v < 255 ? v : 255;
        to[i] = (uint8_t)(int32_t)(v + 0.5f);
    }
}

static void sharpen_floats(float *restrict to, const float *restrict from, long stride,
                           long channels, float factor, int n) {
    const float *above = from - stride, *below = from + stride;
    float others = (1 - factor) / SHARPEN_SUM;
    for (int i = 0; i < n; i++) {
        float sum = above[i - channels] + above[i] + above[i + channels] + from[i - channels] +
                    SHARPEN_MIDDLE * from[i] + from[i + channels] + below[i - channels] + below[i] +
                    below[i + channels];
        to[i] = others * sum + factor * from[i];
    }
}

#endif
