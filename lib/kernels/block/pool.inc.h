// Mean and L2 pools of blocks. What a window sees of a pixel is one contiguous run, so every
// step is elementwise over runs. The adjoints write dx once, and clear nothing before: where
// windows tile the picture, each window scatters to its pixels; where they overlap, each pixel
// gathers from the windows that saw it.
//
// Windows of 2 x 2 and 3 x 3 pixels, and pixels in up to 2 x 2 windows, have their loops unrolled:
// nearly every net uses only these. What those loops need is passed by value: a store of a vector
// may alias anything, so whatever is behind a pointer is read again after it.
#ifndef ADAM_KERNELS_BLOCK_POOL_INC_H
#define ADAM_KERNELS_BLOCK_POOL_INC_H

#include <math.h>
#include <string.h>

#include "kernels/block/run.inc.h"
#include "kernels/window.h"

enum pool_kind { POOL_MEAN, POOL_L2 };

// ---- Forward, one output pixel at a time.

// What one window sees: a pixel and those beside and below it.
struct pool_view {
    const float *x;  // that pixel's run
    size_t run, row; // floats from pixel to pixel, and from row to row
    float factor;    // of the sum
};

__attribute__((always_inline)) static inline void pool_vector(enum pool_kind kind, int rows,
                                                              int columns, float *y,
                                                              struct pool_view view, size_t i,
                                                              int count) {
    vector sum = {0};
#pragma GCC unroll 3
    for (int ky = 0; ky < rows; ky++)
#pragma GCC unroll 3
        for (int kx = 0; kx < columns; kx++) {
            size_t at = (size_t)ky * view.row + (size_t)kx * view.run + i;
            vector value = load_part(view.x + at, count);
            if (kind == POOL_L2)
                value *= value;
            sum += value;
        }
    store_part(y + i, sum * view.factor, count);
}

__attribute__((always_inline)) static inline void
pool_run(enum pool_kind kind, int rows, int columns, float *y, struct pool_view view) {
    size_t i = 0;
    for (; i + LANES <= view.run; i += LANES)
        pool_vector(kind, rows, columns, y, view, i, LANES);
    if (i < view.run)
        pool_vector(kind, rows, columns, y, view, i, (int)(view.run - i));
    if (kind == POOL_L2)
        for (i = 0; i < view.run; i++)
            y[i] = sqrtf(y[i]);
}

// What the factor of a mean depends on: one over the pixels of the window. Whole windows share
// one division, which takes longer than a short run.
struct means {
    const struct window *v;
    float whole;
};

static struct means means_of(const struct window *v) {
    return (struct means){v, 1.0f / (float)(v->kernel_h * v->kernel_w)};
}

static inline float mean_factor(struct means means, int oy, int ox) {
    struct window_span s = window_span(means.v, oy, ox);
    int pixels = (s.y1 - s.y0) * (s.x1 - s.x0);
    return pixels == means.v->kernel_h * means.v->kernel_w ? means.whole : 1.0f / (float)pixels;
}

__attribute__((always_inline)) static inline void pool_pixel(enum pool_kind kind, float *y,
                                                             const float *x, struct means means,
                                                             size_t run, int oy, int ox) {
    struct window_span s = window_span(means.v, oy, ox);
    int rows = s.y1 - s.y0, columns = s.x1 - s.x0;
    struct pool_view view = {.x = x + (size_t)(s.y0 * means.v->w + s.x0) * run,
                             .run = run,
                             .row = (size_t)means.v->w * run,
                             .factor = kind == POOL_MEAN ? mean_factor(means, oy, ox) : 1};
    if (rows == 2 && columns == 2)
        pool_run(kind, 2, 2, y, view);
    else if (rows == 3 && columns == 3)
        pool_run(kind, 3, 3, y, view);
    else
        pool_run(kind, rows, columns, y, view);
}

__attribute__((always_inline)) static inline void pool_block(enum pool_kind kind, float *y,
                                                             const float *x, int blocks, int lanes,
                                                             const struct window *v) {
    size_t run = (size_t)v->c * (size_t)lanes, in = (size_t)(v->h * v->w) * run;
    struct means means = means_of(v);
    for (int b = 0; b < blocks; b++, x += in)
        for (int oy = 0; oy < v->out_h; oy++)
            for (int ox = 0; ox < v->out_w; ox++, y += run)
                pool_pixel(kind, y, x, means, run, oy, ox);
}

static void avgpool_block(float *y, const float *x, int blocks, int lanes, const struct window *v) {
    pool_block(POOL_MEAN, y, x, blocks, lanes, v);
}

static void l2pool_block(float *y, const float *x, int blocks, int lanes, const struct window *v) {
    pool_block(POOL_L2, y, x, blocks, lanes, v);
}

// ---- The adjoints.

// What an adjoint reads of one block; relu: NULL, or the outputs of one through which the
// error gradients of a mean's inputs go on.
struct pooled {
    const float *dy, *y, *relu;
};

// The error gradients of inputs that lie at `at`, having gone through the relu.
__attribute__((always_inline)) static inline void
store_errors(float *dx, vector errors, const float *relu, size_t at, int count) {
    if (relu)
        errors = (vector)((load_part(relu + at, count) > 0) & (vector_int)errors);
    store_part(dx + at, errors, count);
}

// What a window, whose run is at `at`, gives to its pixels.
__attribute__((always_inline)) static inline vector
window_error(enum pool_kind kind, struct pooled from, size_t at, int count) {
    vector error = load_part(from.dy + at, count);
    if (kind != POOL_L2)
        return error;
    vector root = load_part(from.y + at, count);
    return (vector)((root > 0) & (vector_int)(error / root)); // no slope where all is zero
}

// ---- Windows that tile the picture: one window at a time, written to its pixels.

enum { SPREAD_MOST = 9 }; // pixels that a vector is written to at once

static bool window_tiles(const struct window *v) {
    return v->kernel_h == v->stride_h && v->kernel_w == v->stride_w && !v->pad_h && !v->pad_w;
}

// The window at `at`: its first pixel, and the runs of that one's error gradient and, for
// POOL_L2, of itself; from pixel to pixel and from row to row.
struct pool_tile {
    size_t at, run, row;
    float *dx;
    const float *x, *relu;
    float factor; // of a mean
};

__attribute__((always_inline)) static inline void spread_vector(enum pool_kind kind, int rows,
                                                                int columns, struct pool_tile tile,
                                                                struct pooled from, size_t i,
                                                                int count) {
    vector error = window_error(kind, from, tile.at + i, count);
    if (kind == POOL_MEAN)
        error *= tile.factor;
#pragma GCC unroll 3
    for (int ky = 0; ky < rows; ky++)
#pragma GCC unroll 3
        for (int kx = 0; kx < columns; kx++) {
            size_t to = (size_t)ky * tile.row + (size_t)kx * tile.run + i;
            vector part = error;
            if (kind == POOL_L2)
                part *= load_part(tile.x + to, count);
            store_errors(tile.dx, part, tile.relu, to, count);
        }
}

__attribute__((always_inline)) static inline void
spread_run(enum pool_kind kind, int rows, int columns, struct pool_tile tile, struct pooled from) {
    size_t i = 0;
    for (; i + LANES <= tile.run; i += LANES)
        spread_vector(kind, rows, columns, tile, from, i, LANES);
    if (i < tile.run)
        spread_vector(kind, rows, columns, tile, from, i, (int)(tile.run - i));
}

// The same pixel by pixel, as they lie: what a vector gives to many pixels lies too far apart.
__attribute__((always_inline)) static inline void spread_pixels(enum pool_kind kind, int rows,
                                                                int columns, struct pool_tile tile,
                                                                struct pooled from) {
    for (int ky = 0; ky < rows; ky++)
        for (int kx = 0; kx < columns; kx++) {
            size_t to = (size_t)ky * tile.row + (size_t)kx * tile.run;
            struct pool_tile pixel = tile;
            pixel.dx += to;
            pixel.relu = tile.relu ? tile.relu + to : NULL;
            pixel.x = tile.x ? tile.x + to : NULL;
            spread_run(kind, 1, 1, pixel, from);
        }
}

// Zeros where no window stands: right of pixel `columns` of the `rows` first rows,
// and below them.
static void clear_rest(float *dx, const struct window *v, size_t run, int rows, int columns) {
    size_t row = (size_t)v->w * run, covered = (size_t)columns * run;
    for (int y = 0; y < rows; y++)
        memset(dx + (size_t)y * row + covered, 0, (row - covered) * sizeof *dx);
    memset(dx + (size_t)rows * row, 0, (size_t)(v->h - rows) * row * sizeof *dx);
}

__attribute__((always_inline)) static inline void spread_block(enum pool_kind kind, float *dx,
                                                               struct pooled from, const float *x,
                                                               const struct window *v, size_t run) {
    struct pool_tile tile = {.run = run, .row = (size_t)v->w * run};
    struct means means = means_of(v);
    struct window_span s = {0};
    for (int oy = 0; oy < v->out_h; oy++)
        for (int ox = 0; ox < v->out_w; ox++, tile.at += run) {
            s = window_span(v, oy, ox);
            size_t place = (size_t)(s.y0 * v->w + s.x0) * run;
            tile.dx = dx + place;
            tile.relu = from.relu ? from.relu + place : NULL;
            if (kind == POOL_L2)
                tile.x = x + place;
            if (kind == POOL_MEAN)
                tile.factor = mean_factor(means, oy, ox);
            if (s.y1 - s.y0 == 2 && s.x1 - s.x0 == 2)
                spread_run(kind, 2, 2, tile, from);
            else if ((s.y1 - s.y0) * (s.x1 - s.x0) > SPREAD_MOST)
                spread_pixels(kind, s.y1 - s.y0, s.x1 - s.x0, tile, from);
            else
                spread_run(kind, s.y1 - s.y0, s.x1 - s.x0, tile, from);
        }
    clear_rest(dx, v, run, s.y1, s.x1);
}

// ---- Other windows: one input pixel at a time, gathered from the windows that saw it.

// An input pixel: the runs of its error gradient and, for POOL_L2, itself.
// The windows that see it: the first one and the place of its run; the next row of
// windows lies `row` floats further.
struct pool_gather {
    int top, left;
    float *dx;
    const float *x, *relu;
    size_t run, first, row;
};

// `factors` of a mean, row by row; NULL when they are too many to be kept.
__attribute__((always_inline)) static inline void
gather_vector(enum pool_kind kind, int rows, int columns, const float *factors,
              struct pool_gather to, struct pooled from, struct means means, size_t i, int count) {
    vector sum = {0};
#pragma GCC unroll 2
    for (int oy = 0; oy < rows; oy++)
#pragma GCC unroll 2
        for (int ox = 0; ox < columns; ox++) {
            size_t at = to.first + (size_t)oy * to.row + (size_t)ox * to.run + i;
            vector error = window_error(kind, from, at, count);
            if (kind == POOL_MEAN)
                error *= factors ? factors[oy * columns + ox]
                                 : mean_factor(means, to.top + oy, to.left + ox);
            sum += error;
        }
    if (kind == POOL_L2)
        sum *= load_part(to.x + i, count);
    store_errors(to.dx, sum, to.relu, i, count);
}

__attribute__((always_inline)) static inline void
gather_run(enum pool_kind kind, int rows, int columns, const float *factors, struct pool_gather to,
           struct pooled from, struct means means) {
    size_t i = 0;
    for (; i + LANES <= to.run; i += LANES)
        gather_vector(kind, rows, columns, factors, to, from, means, i, LANES);
    if (i < to.run)
        gather_vector(kind, rows, columns, factors, to, from, means, i, (int)(to.run - i));
}

// rows, columns: constants of at most 2.
__attribute__((always_inline)) static inline void gather_few(enum pool_kind kind, int rows,
                                                             int columns, struct pool_gather to,
                                                             struct pooled from,
                                                             struct means means) {
    float factors[4];
    if (kind == POOL_MEAN)
#pragma GCC unroll 4
        for (int i = 0; i < rows * columns; i++)
            factors[i] = mean_factor(means, to.top + i / columns, to.left + i % columns);
    gather_run(kind, rows, columns, factors, to, from, means);
}

__attribute__((always_inline)) static inline void gather_pixel(enum pool_kind kind, int rows,
                                                               int columns, struct pool_gather to,
                                                               struct pooled from,
                                                               struct means means) {
    if (rows == 1 && columns == 1)
        gather_few(kind, 1, 1, to, from, means);
    else if (rows == 1 && columns == 2)
        gather_few(kind, 1, 2, to, from, means);
    else if (rows == 2 && columns == 1)
        gather_few(kind, 2, 1, to, from, means);
    else if (rows == 2 && columns == 2)
        gather_few(kind, 2, 2, to, from, means);
    else
        gather_run(kind, rows, columns, NULL, to, from, means);
}

__attribute__((always_inline)) static inline void gather_block(enum pool_kind kind, float *dx,
                                                               struct pooled from, const float *x,
                                                               const struct window *v, size_t run) {
    struct pool_gather to = {
        .run = run, .dx = dx, .x = x, .relu = from.relu, .row = (size_t)v->out_w * run};
    struct means means = means_of(v);
    struct seen down = {0};
    for (int row = 0; row < v->h; row++) {
        struct seen across = {0};
        seen_advance(&down, row, v->kernel_h, v->stride_h, v->pad_h, v->out_h);
        to.top = down.first;
        for (int column = 0; column < v->w; column++, to.dx += run) {
            seen_advance(&across, column, v->kernel_w, v->stride_w, v->pad_w, v->out_w);
            to.left = across.first;
            to.first = (size_t)to.top * to.row + (size_t)to.left * run;
            gather_pixel(kind, down.last - down.first, across.last - across.first, to, from, means);
            if (kind == POOL_L2)
                to.x += run;
            if (to.relu)
                to.relu += run;
        }
    }
}

__attribute__((always_inline)) static inline void
pool_block_back(enum pool_kind kind, float *dx, struct pooled from, const float *x,
                const struct window *v, size_t run) {
    if (window_tiles(v))
        spread_block(kind, dx, from, x, v, run);
    else
        gather_block(kind, dx, from, x, v, run);
}

static void avgpool_block_back(float *dx, const float *dy, const float *relu, int blocks, int lanes,
                               const struct window *v) {
    size_t run = (size_t)v->c * (size_t)lanes;
    size_t in = (size_t)(v->h * v->w) * run, out = (size_t)(v->out_h * v->out_w) * run;
    for (int b = 0; b < blocks; b++, dx += in, dy += out)
        pool_block_back(POOL_MEAN, dx,
                        (struct pooled){.dy = dy, .relu = relu ? relu + (size_t)b * in : NULL},
                        NULL, v, run);
}

static void l2pool_block_back(float *dx, const float *dy, const float *y, const float *x,
                              int blocks, int lanes, const struct window *v) {
    size_t run = (size_t)v->c * (size_t)lanes;
    size_t in = (size_t)(v->h * v->w) * run, out = (size_t)(v->out_h * v->out_w) * run;
    for (int b = 0; b < blocks; b++, dx += in, dy += out, y += out, x += in)
        pool_block_back(POOL_L2, dx, (struct pooled){.dy = dy, .y = y}, x, v, run);
}

#endif
