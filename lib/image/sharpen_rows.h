// The inner loops of image_sharpen, compiled once for each family of processors.
// Inside lib/image only.
#ifndef ADAM_IMAGE_SHARPEN_ROWS_H
#define ADAM_IMAGE_SHARPEN_ROWS_H

#include <stdint.h>

// n values of a row, none of a pixel at its ends; `from` is in the middle of three rows that are
// `stride` values apart, and a pixel has `channels` values.
struct sharpen_rows {
    void (*bytes)(uint8_t *to, const uint8_t *from, long stride, long channels, float factor,
                  int n);
    void (*floats)(float *to, const float *from, long stride, long channels, float factor, int n);
};

extern const struct sharpen_rows sharpen_rows_ref, sharpen_rows_avx2;

#endif
