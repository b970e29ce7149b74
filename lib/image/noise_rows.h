// The inner loops of image/noise.h, compiled once for each family of processors.
// Inside lib/image only.
#ifndef ADAM_IMAGE_NOISE_ROWS_H
#define ADAM_IMAGE_NOISE_ROWS_H

#include <stdint.h>

struct noise_rows {
    // pixels[i] += scale * normal[i]
    void (*add_u8)(uint8_t *pixels, const float *normal, float scale, int n);
    void (*add_f32)(float *pixels, const float *normal, float scale, int n);
};

extern const struct noise_rows noise_rows_ref, noise_rows_avx2;

#endif
