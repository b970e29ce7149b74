// The loops of struct noise_rows, compiled once for each family of processors and
// vectorised by the compiler, for which they call nothing.
#ifndef ADAM_IMAGE_PORTABLE_NOISE_INC_H
#define ADAM_IMAGE_PORTABLE_NOISE_INC_H

#include "core/portable/exact.inc.h"

#include <stdint.h>

#include "image/noise_rows.h"

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
