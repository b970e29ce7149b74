// Local response normalisation of blocks, in one pass: the maps of a pixel lie in one run, `lanes`
// floats apart, so the window around a vector is a few unaligned loads. `scale` keeps what the
// adjoint needs of scale = k + alpha/size * sum x^2: its inverse fourth root r if beta is 3/4, as
// in every published net (then scale^-beta is r^3 and 1 / scale is r^4, and no root is computed
// again), otherwise its inverse.
//
// x^-1/4 is computed by Newton's method: faster than two square roots and a division, and, unlike
// the processor's approximate roots, the same on every processor. Where a map is one vector, in
// blocks of as many lanes, each term of the windows is computed once.
#ifndef ADAM_KERNELS_BLOCK_LRN_INC_H
#define ADAM_KERNELS_BLOCK_LRN_INC_H

#include <math.h>

#include "kernels/block/run.inc.h"

// One pixel. The windows of the forward pass begin size/2 maps before theirs; those
// of the adjoint are mirrored.
struct lrn_run {
    const float *x, *y, *dy, *kept;
    ptrdiff_t length;       // of the run
    ptrdiff_t lanes;        // floats from map to map
    int size, before;       // maps of a window, and how many of them before its own
    float factor, constant; // of the sum, and what is added to it
    float beta;
    bool relu; // x are the outputs of one, through which the error gradients dx go on
};

// x^-1/4 to about 2 units in the last place: a first guess with a relative error of 4%, by halving
// the exponent twice, and three steps of Newton's method, r (5 - x r^4) / 4.
__attribute__((always_inline)) static inline vector inverse_fourth_root(vector x) {
    vector r = (vector)(0x4f58cae5 - ((vector_int)x >> 2)), quarter = 0.25f * x;
#pragma GCC unroll 3
    for (int step = 0; step < 3; step++) {
        vector square = r * r;
        r *= 1.25f - quarter * (square * square);
    }
    return r;
}

__attribute__((always_inline)) static inline vector power_each(vector x, float exponent) {
    for (int l = 0; l < LANES; l++)
        x[l] = powf(x[l], exponent);
    return x;
}

// scale^-beta from what is kept of the scale.
__attribute__((always_inline)) static inline vector lrn_power(bool quarter, vector kept,
                                                              float beta) {
    if (quarter)
        return kept * kept * kept;
    return power_each(kept, beta);
}

// Lanes [first, first + count) of what the window sums up: x^2, and dy y / scale for
// the adjoint.
__attribute__((always_inline)) static inline vector
lrn_term(bool back, bool quarter, struct lrn_run run, ptrdiff_t at, int first, int count) {
    if (!back) {
        vector x = load_lanes(run.x + at, first, count);
        return x * x;
    }
    vector inverse = load_lanes(run.kept + at, first, count);
    if (quarter) {
        inverse *= inverse;
        inverse *= inverse;
    }
    return load_lanes(run.dy + at, first, count) * load_lanes(run.y + at, first, count) * inverse;
}

// The sum over the windows around the vector at `i`, all of whose maps exist.
__attribute__((always_inline)) static inline vector lrn_sum(bool back, bool quarter, int size,
                                                            struct lrn_run run, ptrdiff_t i) {
    vector sum = {0};
    ptrdiff_t at = i - run.before * run.lanes;
#pragma GCC unroll 5
    for (int t = 0; t < size; t++, at += run.lanes)
        sum += lrn_term(back, quarter, run, at, 0, LANES);
    return sum;
}

// The same where some of the maps may not exist.
__attribute__((always_inline)) static inline vector
lrn_sum_clipped(bool back, bool quarter, struct lrn_run run, ptrdiff_t i) {
    vector sum = {0};
    ptrdiff_t at = i - run.before * run.lanes;
    for (int t = 0; t < run.size; t++, at += run.lanes) {
        ptrdiff_t first = at < 0 ? -at : 0;
        ptrdiff_t last = run.length - at < LANES ? run.length - at : LANES;
        if (first < last)
            sum += lrn_term(back, quarter, run, at, (int)first, (int)(last - first));
    }
    return sum;
}

__attribute__((always_inline)) static inline void lrn_vector(bool back, bool quarter, float *out,
                                                             float *kept, struct lrn_run run,
                                                             vector sum, ptrdiff_t i, int count) {
    vector x = load_part(run.x + i, count);
    if (back) {
        vector power = lrn_power(quarter, load_part(run.kept + i, count), run.beta);
        vector errors = load_part(run.dy + i, count) * power - run.factor * x * sum;
        if (run.relu)
            errors = (vector)((x > 0) & (vector_int)errors);
        store_part(out + i, errors, count);
        return;
    }
    vector scale = run.constant + run.factor * sum;
    vector keep = 1.0f / scale;
    if (quarter)
        keep = inverse_fourth_root(scale);
    store_part(kept + i, keep, count);
    store_part(out + i, x * lrn_power(quarter, keep, run.beta), count);
}

// Writes y and what is kept or, going back, dx.
__attribute__((always_inline)) static inline void
lrn_pixel(bool back, bool quarter, int size, float *out, float *kept, struct lrn_run run) {
    ptrdiff_t before = run.before * run.lanes;
    ptrdiff_t after = (run.size - 1 - run.before) * run.lanes, i = 0;
    for (; i + LANES <= run.length; i += LANES) {
        bool inside = i >= before && i + LANES + after <= run.length;
        vector sum =
            inside ? lrn_sum(back, quarter, size, run, i) : lrn_sum_clipped(back, quarter, run, i);
        lrn_vector(back, quarter, out, kept, run, sum, i, LANES);
    }
    if (i < run.length)
        lrn_vector(back, quarter, out, kept, run, lrn_sum_clipped(back, quarter, run, i), i,
                   (int)(run.length - i));
}

// The term of a whole vector, without reading y: one array less of five from the L3 cache.
__attribute__((always_inline)) static inline vector lrn_map_term(bool back, struct lrn_run run,
                                                                 ptrdiff_t at) {
    vector x = load_part(run.x + at, LANES);
    if (!back)
        return x * x;
    vector r = load_part(run.kept + at, LANES), square = r * r;
    return load_part(run.dy + at, LANES) * (x * (square * r)) * (square * square);
}

// A pixel where each map is one vector: a window's terms are those of the window before
// but for one.
__attribute__((always_inline)) static inline void lrn_pixel_maps(bool back, int size, float *out,
                                                                 float *kept, struct lrn_run run) {
    vector terms[5] = {0};
    ptrdiff_t ahead = (ptrdiff_t)(size - 1 - run.before) * LANES;
    for (ptrdiff_t i = -ahead; i < run.length; i += LANES) {
        vector sum = {0};
#pragma GCC unroll 5
        for (int t = 0; t + 1 < size; t++)
            sum += terms[t] = terms[t + 1];
        terms[size - 1] = (vector){0};
        if (i + ahead < run.length)
            terms[size - 1] = lrn_map_term(back, run, i + ahead);
        if (i >= 0)
            lrn_vector(back, true, out, kept, run, sum + terms[size - 1], i, LANES);
    }
}

// `maps`: each is one vector.
__attribute__((always_inline)) static inline void lrn_pixels(bool back, bool quarter, bool maps,
                                                             int size, float *out, float *kept,
                                                             struct lrn_run run, size_t pixels) {
    for (size_t p = 0; p < pixels; p++) {
        if (maps)
            lrn_pixel_maps(back, size, out, kept, run);
        else
            lrn_pixel(back, quarter, size, out, kept, run);
        out += run.length, run.x += run.length;
        if (back)
            run.y += run.length, run.dy += run.length, run.kept += run.length;
        else
            kept += run.length;
    }
}

__attribute__((always_inline)) static inline void lrn_all(bool back, float *out, float *kept,
                                                          struct lrn_run run, size_t pixels) {
    bool maps = run.lanes == LANES;
    if (run.beta != 0.75f)
        lrn_pixels(back, false, false, run.size, out, kept, run, pixels);
    else if (run.size == 3 && maps)
        lrn_pixels(back, true, true, 3, out, kept, run, pixels);
    else if (run.size == 5 && maps)
        lrn_pixels(back, true, true, 5, out, kept, run, pixels);
    else if (run.size == 3)
        lrn_pixels(back, true, false, 3, out, kept, run, pixels);
    else if (run.size == 5)
        lrn_pixels(back, true, false, 5, out, kept, run, pixels);
    else
        lrn_pixels(back, true, false, run.size, out, kept, run, pixels);
}

static void lrn_block(float *y, float *scale, const float *x, int blocks, int lanes, int c,
                      int pixels, int size, float alpha, float beta, float k) {
    struct lrn_run run = {.x = x,
                          .length = (ptrdiff_t)c * lanes,
                          .lanes = lanes,
                          .size = size,
                          .before = size / 2,
                          .factor = alpha / (float)size,
                          .constant = k,
                          .beta = beta};
    lrn_all(false, y, scale, run, (size_t)blocks * (size_t)pixels);
}

static void lrn_block_back(float *dx, const float *dy, const float *y, const float *scale,
                           const float *x, bool relu, int blocks, int lanes, int c, int pixels,
                           int size, float alpha, float beta) {
    struct lrn_run run = {.x = x,
                          .y = y,
                          .dy = dy,
                          .kept = scale,
                          .length = (ptrdiff_t)c * lanes,
                          .lanes = lanes,
                          .size = size,
                          .before = size - 1 - size / 2,
                          .factor = 2.0f * alpha * beta / (float)size,
                          .beta = beta,
                          .relu = relu};
    lrn_all(true, dx, NULL, run, (size_t)blocks * (size_t)pixels);
}

#endif
