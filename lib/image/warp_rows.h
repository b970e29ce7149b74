// The inner loops of a warp: stretches of a row whose samples all lie inside the
// picture, so that no bounds are tested. Inside lib/image only.
//
// Coordinates have 32 bits behind the point. Bytes are sampled with 16 of them:
// of x the top 14 and of y the top 7 are the weights fx and fy, for which half of
// the last one was added before. They are blended first down, then across:
//
//   left  = (128 - fy) (p00 - 128) + fy (p10 - 128)           right likewise
//   byte  = (left (2^14 - fx) + right fx + 2^20 >> 21) + 128
//
// Every variant gives these bytes exactly.
#ifndef ADAM_IMAGE_WARP_ROWS_H
#define ADAM_IMAGE_WARP_ROWS_H

#include <stddef.h>
#include <stdint.h>

enum {
    WARP_POINT = 32, // bits behind the point of a coordinate
    WARP_CUT = 16,   // of which so many are cut off for bytes
    WARP_X_BITS = 14,
    WARP_Y_BITS = 7,
    WARP_MARGIN = 2, // columns at the right that a stretch leaves to the border's code
    WARP_GROUP = 8,  // pixels whose coordinates are taken from the first one's
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
    return ((left * ((1 << 14) - fx) + right * fx + (1 << 20)) >> 21) + 128;
}

static inline uint32_t warp_cut(int64_t coordinate) {
    return (uint32_t)(coordinate >> WARP_CUT);
}

// The cut coordinate of pixel i of a stretch: at most one unit below the exact one.
static inline uint32_t warp_cut_at(int64_t start, int64_t step, int i) {
    int k = i % WARP_GROUP;
    return warp_cut(start + (i - k) * step) + warp_cut(k * step);
}

static inline int warp_fx(uint32_t x) {
    return (int)(x >> (16 - WARP_X_BITS)) & ((1 << WARP_X_BITS) - 1);
}

static inline int warp_fy(uint32_t y) {
    return (int)(y >> (16 - WARP_Y_BITS)) & ((1 << WARP_Y_BITS) - 1);
}

// The pixel at (x, y), all of whose neighbours lie inside.
static inline void warp_pixel_u8(uint8_t *to, const struct warp_source *from, uint32_t x,
                                 uint32_t y) {
    int channels = from->channels, fx = warp_fx(x), fy = warp_fy(y);
    const uint8_t *p =
        (const uint8_t *)from->data + (y >> 16) * from->stride + (ptrdiff_t)(x >> 16) * channels;
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

// Three channels of bytes, where neither rows nor the stride pass 32767. It returns
// how many of the n pixels it wrote, whole groups; the rest is for warp_row_u8.
int warp_row_rgb_avx2(uint8_t *to, const struct warp_source *from, int n, struct warp_step at);

#endif
