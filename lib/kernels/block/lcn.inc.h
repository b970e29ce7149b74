// Local contrast normalisation of blocks: the steps of portable/lcn.inc.h, with `lanes`
// planes side by side.
#ifndef ADAM_KERNELS_BLOCK_LCN_INC_H
#define ADAM_KERNELS_BLOCK_LCN_INC_H

#include <math.h>

#include "kernels/block/run.inc.h"
#include "kernels/portable/blur.inc.h"

// The runs of a block, and its planes of pixels x lanes.
struct planes {
    size_t pixels, run;
    int lanes;
    float share; // of one map in a mean over maps
};

static struct planes planes_of(int lanes, int c, int h, int w) {
    return (struct planes){(size_t)h * (size_t)w, (size_t)c * (size_t)lanes, lanes,
                           1.0f / (float)c};
}

static int run_part(size_t length, size_t i) {
    return length - i < LANES ? (int)(length - i) : LANES;
}

// v plus what lies `s` lanes further on, round and round, unless s is less than
// `lanes`. With s a constant the places are constants.
__attribute__((always_inline)) static inline vector add_rotated(vector v, int s, int lanes) {
    places at;
#pragma GCC unroll 16
    for (int l = 0; l < LANES; l++)
        at[l] = (l + s) % LANES;
    if (s < lanes)
        return v;
    return v + shuffle(v, v, at);
}

// Each of the first `lanes` numbers summed with those that stand for it further on:
// the sums over the maps that lie in a vector, in each of their places.
__attribute__((always_inline)) static inline vector add_maps(vector v, int lanes) {
    v = add_rotated(v, 1, lanes);
    v = add_rotated(v, 2, lanes);
    if (LANES > 4)
        v = add_rotated(v, 4, lanes);
    if (LANES > 8)
        v = add_rotated(v, 8, lanes);
    return v;
}

// One pixel of a plane, repeated over a vector: for all maps that lie in it.
__attribute__((always_inline)) static inline vector plane_repeat(const float *from, int lanes) {
    return add_maps(load_part(from, lanes), lanes);
}

// The other way: the sums over the maps that lie in a vector.
__attribute__((always_inline)) static inline void plane_fold(float *to, vector v, int lanes) {
    store_part(to, add_maps(v, lanes), lanes);
}

// One pixel: the mean over maps of x.
static void run_mean(float *mean, const float *x, const struct planes *b) {
    vector sum = {0};
    for (size_t i = 0; i < b->run; i += LANES)
        sum += load_part(x + i, run_part(b->run, i));
    plane_fold(mean, b->share * sum, b->lanes);
}

// The same of x y.
static void run_mean_product(float *mean, const float *x, const float *y, const struct planes *b) {
    vector sum = {0};
    for (size_t i = 0; i < b->run; i += LANES) {
        int count = run_part(b->run, i);
        sum += load_part(x + i, count) * load_part(y + i, count);
    }
    plane_fold(mean, b->share * sum, b->lanes);
}

// to = from times a pixel of a plane, or less it.
static void run_scale(float *to, const float *from, vector factor, size_t run) {
    for (size_t i = 0; i < run; i += LANES) {
        int count = run_part(run, i);
        store_part(to + i, load_part(from + i, count) * factor, count);
    }
}

static void run_subtract(float *to, const float *from, vector value, size_t run) {
    for (size_t i = 0; i < run; i += LANES) {
        int count = run_part(run, i);
        store_part(to + i, load_part(from + i, count) - value, count);
    }
}

// What a vector of deviations divides by.
static vector deviation(vector s, float least) {
    return choose(s > least, s, (vector){0} + least);
}

// The first map of y serves as scratch until y is written, and s as the mean.
static void lcn_block_forward(float *y, float *v, float *s, const float *x, int h, int w, int size,
                              float least, const struct planes *b) {
    size_t lanes = (size_t)b->lanes;
    for (size_t p = 0; p < b->pixels; p++)
        run_mean(s + p * lanes, x + p * b->run, b);
    blur(s, y, h, w, b->lanes, size, false);
    for (size_t p = 0; p < b->pixels; p++) {
        float *centred = v + p * b->run;
        run_subtract(centred, x + p * b->run, plane_repeat(s + p * lanes, b->lanes), b->run);
        run_mean_product(s + p * lanes, centred, centred, b);
    }
    blur(s, y, h, w, b->lanes, size, false);
    for (size_t i = 0; i < b->pixels * lanes; i++)
        s[i] = sqrtf(s[i]);
    for (size_t p = 0; p < b->pixels; p++) {
        vector divisor = deviation(plane_repeat(s + p * lanes, b->lanes), least);
        run_scale(y + p * b->run, v + p * b->run, 1.0f / divisor, b->run);
    }
}

static void lcn_block(float *y, float *v, float *s, const float *x, int blocks, int lanes, int c,
                      int h, int w, int size, float least) {
    struct planes b = planes_of(lanes, c, h, w);
    for (int i = 0; i < blocks; i++) {
        size_t at = (size_t)i * b.pixels * b.run;
        lcn_block_forward(y + at, v + at, s + (size_t)i * b.pixels * (size_t)lanes, x + at, h, w,
                          size, least, &b);
    }
}

// One pixel of dv = dy / d - v * `mean`, for a mean that G' has spread.
static void lcn_run_back(float *dv, const float *dy, const float *v, vector divisor, vector mean,
                         size_t run) {
    vector factor = 1.0f / divisor;
    for (size_t i = 0; i < run; i += LANES) {
        int count = run_part(run, i);
        store_part(dv + i, load_part(dy + i, count) * factor - load_part(v + i, count) * mean,
                   count);
    }
}

static void lcn_block_backward(float *dx, const float *dy, const float *v, const float *s,
                               float *plane, int h, int w, int size, float least,
                               const struct planes *b) {
    size_t lanes = (size_t)b->lanes, plane_size = b->pixels * lanes;
    float *scratch = plane + plane_size;
    for (size_t p = 0; p < b->pixels; p++)
        run_mean_product(plane + p * lanes, dy + p * b->run, v + p * b->run, b);
    for (size_t i = 0; i < plane_size; i++)
        plane[i] = s[i] > least ? plane[i] / (s[i] * s[i] * s[i]) : 0;
    blur(plane, scratch, h, w, b->lanes, size, true);
    for (size_t p = 0; p < b->pixels; p++) {
        float *dv = dx + p * b->run, *mean = plane + p * lanes;
        lcn_run_back(dv, dy + p * b->run, v + p * b->run,
                     deviation(plane_repeat(s + p * lanes, b->lanes), least),
                     plane_repeat(mean, b->lanes), b->run);
        run_mean(mean, dv, b);
    }
    blur(plane, scratch, h, w, b->lanes, size, true);
    for (size_t p = 0; p < b->pixels; p++)
        run_subtract(dx + p * b->run, dx + p * b->run, plane_repeat(plane + p * lanes, b->lanes),
                     b->run);
}

static void lcn_block_back(float *dx, const float *dy, const float *v, const float *s, float *plane,
                           int blocks, int lanes, int c, int h, int w, int size, float least) {
    struct planes b = planes_of(lanes, c, h, w);
    for (int i = 0; i < blocks; i++) {
        size_t at = (size_t)i * b.pixels * b.run;
        lcn_block_backward(dx + at, dy + at, v + at, s + (size_t)i * b.pixels * (size_t)lanes,
                           plane, h, w, size, least, &b);
    }
}

#endif
