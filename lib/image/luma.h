// What of a colour is seen as brightness: luma of ITU-R BT.601, as in JPEG.
#ifndef ADAM_IMAGE_LUMA_H
#define ADAM_IMAGE_LUMA_H

#include <stdint.h>

// 16-bit fixed point, the factors adding up to one.
static inline uint8_t luma_u8(const uint8_t *rgb) {
    return (uint8_t)((19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 32768U) >> 16);
}

static inline float luma_f32(const float *rgb) {
    return 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
}

#endif
