// The inner loops of image/floats.h, compiled once for each family of processors.
// Inside lib/image only.
#ifndef ADAM_IMAGE_FLOATS_ROWS_H
#define ADAM_IMAGE_FLOATS_ROWS_H

#include <stddef.h>
#include <stdint.h>

struct floats_rows {
    // to[i] = from[i] * gain[i] + offset[i]
    void (*linear_u8)(float *to, const uint8_t *from, const float *gain, const float *offset,
                      size_t n);
    void (*linear_f32)(float *to, const float *from, const float *gain, const float *offset,
                       size_t n);
    // n triples into three planes
    void (*split_u8)(float *r, float *g, float *b, const uint8_t *from, size_t n);
    void (*split_f32)(float *r, float *g, float *b, const float *from, size_t n);
};

extern const struct floats_rows floats_rows_ref, floats_rows_avx2;

#endif
