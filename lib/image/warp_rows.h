// The inner loops of a warp: stretches of a row whose samples all lie inside the
// picture, so that no bounds are tested. Inside lib/image only.
//
// Coordinates are fixed point with 32 bits behind the point, already rounded: the
// top 7 bits behind the point of y and the top 15 of x are the weights. Bytes are
// blended first down, then across, in 16 bits:
//
//   left  = (128 - fy) (p00 - 128) + fy (p10 - 128)           right likewise
//   value = left + ((right - left) fx + 2^14 >> 15)
//   byte  = (value + 64 >> 7) + 128
//
// Every variant gives these bytes exactly.
#ifndef ADAM_IMAGE_WARP_ROWS_H
#define ADAM_IMAGE_WARP_ROWS_H

#include <stddef.h>
#include <stdint.h>

enum {
    WARP_POINT = 32, // bits behind the point of a coordinate
    WARP_X_BITS = 15,
    WARP_Y_BITS = 7,
    WARP_MARGIN = 2, // columns at the right that a stretch leaves to the border's code
};

#define WARP_X_HALF (INT64_C(1) << (WARP_POINT - WARP_X_BITS - 1))
#define WARP_Y_HALF (INT64_C(1) << (WARP_POINT - WARP_Y_BITS - 1))

struct warp_source {
    const void *data;
    ptrdiff_t stride; // values from row to row
    int channels;
};

// Where the first pixel of a stretch is read, and the step from pixel to pixel.
struct warp_step {
    int64_t x, y, dx, dy;
};

static inline int warp_blend(int p00, int p01, int p10, int p11, int fx, int fy) {
    int left = (128 - fy) * (p00 - 128) + fy * (p10 - 128);
    int right = (128 - fy) * (p01 - 128) + fy * (p11 - 128);
    int value = left + (((right - left) * fx + 0x4000) >> 15);
    return ((value + 64) >> 7) + 128;
}

static inline int warp_fx(int64_t x) {
    return (int)(x >> (WARP_POINT - WARP_X_BITS)) & ((1 << WARP_X_BITS) - 1);
}

static inline int warp_fy(int64_t y) {
    return (int)(y >> (WARP_POINT - WARP_Y_BITS)) & ((1 << WARP_Y_BITS) - 1);
}

// The pixel at (x, y), all of whose neighbours lie inside.
static inline void warp_pixel_u8(uint8_t *to, const struct warp_source *from, int64_t x,
                                 int64_t y) {
    int channels = from->channels, fx = warp_fx(x), fy = warp_fy(y);
    const uint8_t *p = (const uint8_t *)from->data + (y >> WARP_POINT) * from->stride +
                       (x >> WARP_POINT) * channels;
    const uint8_t *q = p + from->stride;
    for (int c = 0; c < channels; c++)
        to[c] = (uint8_t)warp_blend(p[c], p[c + channels], q[c], q[c + channels], fx, fy);
}

static inline void warp_pixel_f32(float *to, const struct warp_source *from, int64_t x, int64_t y) {
    int channels = from->channels;
    float fx = (float)(uint32_t)x * 0x1p-32f, fy = (float)(uint32_t)y * 0x1p-32f;
    const float *p =
        (const float *)from->data + (y >> WARP_POINT) * from->stride + (x >> WARP_POINT) * channels;
    const float *q = p + from->stride;
    for (int c = 0; c < channels; c++) {
        float left = p[c] + (q[c] - p[c]) * fy;
        float right = p[c + channels] + (q[c + channels] - p[c + channels]) * fy;
        to[c] = left + (right - left) * fx;
    }
}

void warp_row_u8(uint8_t *to, const struct warp_source *from, int n, struct warp_step at);
void warp_row_f32(float *to, const struct warp_source *from, int n, struct warp_step at);

// Three channels of bytes. They return how many of the n pixels they wrote; the
// rest is for warp_row_u8.
int warp_row_rgb_avx2(uint8_t *to, const struct warp_source *from, int n, struct warp_step at);

#endif
