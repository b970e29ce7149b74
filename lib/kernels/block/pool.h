// Pools of blocks. What a window sees of a pixel is one contiguous run, so every
// step is elementwise over runs. An adjoint gathers, for each pixel of the input,
// from the windows that saw it: dx is written once, and not cleared before.
//
// Windows of 2 x 2 and 3 x 3 pixels, and pixels in up to 2 x 2 windows, have their
// loops unrolled: nearly all of nearly every net.
#ifndef ADAM_KERNELS_BLOCK_POOL_H
#define ADAM_KERNELS_BLOCK_POOL_H

#include <math.h>

#include "kernels/block/run.h"
#include "kernels/portable/pool.h"

enum pool { POOL_MAX, POOL_MEAN, POOL_L2 };

// ---- Forward, one output pixel at a time.

// What one window sees: the pixel numbered `place` and those beside and below it.
struct pool_view {
    const float *x;  // that pixel's run
    size_t run, row; // floats from pixel to pixel, and from row to row
    int place, width;
    float factor; // of the sum
};

__attribute__((always_inline)) static inline void maxpool_vector(int rows, int columns, float *y,
                                                                 int32_t *winner,
                                                                 const struct pool_view *view,
                                                                 size_t i, int count) {
    vector most = load_part(view->x + i, count);
    vector_int best = (vector_int){0} + view->place;
#pragma GCC unroll 3
    for (int ky = 0; ky < rows; ky++)
#pragma GCC unroll 3
        for (int kx = ky == 0; kx < columns; kx++) {
            size_t at = (size_t)ky * view->row + (size_t)kx * view->run + i;
            vector value = load_part(view->x + at, count);
            vector_int wins = value > most;
            most = choose(wins, value, most);
            best = choose_int(wins, (vector_int){0} + (view->place + ky * view->width + kx), best);
        }
    store_part(y + i, most, count);
    store_part_int(winner + i, best, count);
}

__attribute__((always_inline)) static inline void sumpool_vector(bool squares, int rows,
                                                                 int columns, float *y,
                                                                 const struct pool_view *view,
                                                                 size_t i, int count) {
    vector sum = {0};
#pragma GCC unroll 3
    for (int ky = 0; ky < rows; ky++)
#pragma GCC unroll 3
        for (int kx = 0; kx < columns; kx++) {
            size_t at = (size_t)ky * view->row + (size_t)kx * view->run + i;
            vector value = load_part(view->x + at, count);
            if (squares)
                value *= value;
            sum += value;
        }
    store_part(y + i, sum * view->factor, count);
}

__attribute__((always_inline)) static inline void pool_vector(enum pool kind, int rows, int columns,
                                                              float *y, int32_t *winner,
                                                              const struct pool_view *view,
                                                              size_t i, int count) {
    if (kind == POOL_MAX)
        maxpool_vector(rows, columns, y, winner, view, i, count);
    else
        sumpool_vector(kind == POOL_L2, rows, columns, y, view, i, count);
}

__attribute__((always_inline)) static inline void pool_run(enum pool kind, int rows, int columns,
                                                           float *y, int32_t *winner,
                                                           const struct pool_view *view) {
    size_t i = 0;
    for (; i + LANES <= view->run; i += LANES)
        pool_vector(kind, rows, columns, y, winner, view, i, LANES);
    if (i < view->run)
        pool_vector(kind, rows, columns, y, winner, view, i, (int)(view->run - i));
    if (kind == POOL_L2)
        for (i = 0; i < view->run; i++)
            y[i] = sqrtf(y[i]);
}

__attribute__((always_inline)) static inline void pool_pixel(enum pool kind, float *y,
                                                             int32_t *winner, const float *x,
                                                             const struct window *v, size_t run,
                                                             struct span s) {
    int rows = s.y1 - s.y0, columns = s.x1 - s.x0, place = s.y0 * v->w + s.x0;
    struct pool_view view = {.x = x + (size_t)place * run,
                             .run = run,
                             .row = (size_t)v->w * run,
                             .place = place,
                             .width = v->w,
                             .factor = kind == POOL_MEAN ? span_mean_factor(s) : 1};
    if (rows == 2 && columns == 2)
        pool_run(kind, 2, 2, y, winner, &view);
    else if (rows == 3 && columns == 3)
        pool_run(kind, 3, 3, y, winner, &view);
    else
        pool_run(kind, rows, columns, y, winner, &view);
}

__attribute__((always_inline)) static inline void pool_block(enum pool kind, float *y,
                                                             int32_t *winner, const float *x,
                                                             int blocks, int lanes,
                                                             const struct window *v) {
    size_t run = (size_t)v->c * (size_t)lanes, in = (size_t)(v->h * v->w) * run;
    for (int b = 0; b < blocks; b++, x += in)
        for (int oy = 0; oy < v->out_h; oy++)
            for (int ox = 0; ox < v->out_w; ox++, y += run) {
                pool_pixel(kind, y, winner, x, v, run, window_span(v, oy, ox));
                if (kind == POOL_MAX)
                    winner += run;
            }
}

static void maxpool_block(float *y, int32_t *winner, const float *x, int blocks, int lanes,
                          const struct window *v) {
    pool_block(POOL_MAX, y, winner, x, blocks, lanes, v);
}

static void avgpool_block(float *y, const float *x, int blocks, int lanes, const struct window *v) {
    pool_block(POOL_MEAN, y, NULL, x, blocks, lanes, v);
}

static void l2pool_block(float *y, const float *x, int blocks, int lanes, const struct window *v) {
    pool_block(POOL_L2, y, NULL, x, blocks, lanes, v);
}

// ---- The adjoints, one input pixel at a time.

// The windows [first, last) that see one row or column of the picture.
struct seen {
    int first, last;
};

// The same for the next row or column, `at`; before the first one both are 0.
static inline void seen_advance(struct seen *s, int at, int kernel, int stride, int pad, int out) {
    while (s->last < out && s->last * stride - pad <= at)
        s->last++;
    while (s->first < s->last && s->first * stride - pad + kernel <= at)
        s->first++;
}

// What an adjoint reads of one block.
struct pooled {
    const float *dy, *y, *x;
    const int32_t *winner;
};

__attribute__((always_inline)) static inline vector gather_window(enum pool kind,
                                                                  const struct pooled *from,
                                                                  size_t at, int place,
                                                                  float factor, int count) {
    vector error = load_part(from->dy + at, count);
    if (kind == POOL_MAX)
        return (vector)((load_part_int(from->winner + at, count) == place) & (vector_int)error);
    if (kind == POOL_MEAN)
        return error * factor;
    vector root = load_part(from->y + at, count);
    return (vector)((root > 0) & (vector_int)(error / root)); // no slope where all is zero
}

__attribute__((always_inline)) static inline void
gather_vector(enum pool kind, int rows, int columns, float *dx, const struct pooled *from,
              const struct window *v, struct seen down, struct seen across, int place, size_t run,
              size_t i, int count) {
    vector sum = {0};
#pragma GCC unroll 2
    for (int oy = down.first; oy < down.first + rows; oy++)
#pragma GCC unroll 2
        for (int ox = across.first; ox < across.first + columns; ox++) {
            size_t at = (size_t)(oy * v->out_w + ox) * run + i;
            float factor = kind == POOL_MEAN ? span_mean_factor(window_span(v, oy, ox)) : 1;
            sum += gather_window(kind, from, at, place, factor, count);
        }
    if (kind == POOL_L2)
        sum *= load_part(from->x + i, count);
    store_part(dx + i, sum, count);
}

__attribute__((always_inline)) static inline void
gather_run(enum pool kind, int rows, int columns, float *dx, const struct pooled *from,
           const struct window *v, struct seen down, struct seen across, int place, size_t run) {
    size_t i = 0;
    for (; i + LANES <= run; i += LANES)
        gather_vector(kind, rows, columns, dx, from, v, down, across, place, run, i, LANES);
    if (i < run)
        gather_vector(kind, rows, columns, dx, from, v, down, across, place, run, i,
                      (int)(run - i));
}

__attribute__((always_inline)) static inline void
gather_pixel(enum pool kind, float *dx, const struct pooled *from, const struct window *v,
             struct seen down, struct seen across, int place, size_t run) {
    int rows = down.last - down.first, columns = across.last - across.first;
    if (rows == 1 && columns == 1)
        gather_run(kind, 1, 1, dx, from, v, down, across, place, run);
    else if (rows == 1 && columns == 2)
        gather_run(kind, 1, 2, dx, from, v, down, across, place, run);
    else if (rows == 2 && columns == 1)
        gather_run(kind, 2, 1, dx, from, v, down, across, place, run);
    else if (rows == 2 && columns == 2)
        gather_run(kind, 2, 2, dx, from, v, down, across, place, run);
    else
        gather_run(kind, rows, columns, dx, from, v, down, across, place, run);
}

__attribute__((always_inline)) static inline void
gather_block(enum pool kind, float *dx, struct pooled from, const struct window *v, size_t run) {
    struct seen down = {0};
    for (int y = 0, place = 0; y < v->h; y++) {
        struct seen across = {0};
        seen_advance(&down, y, v->kernel_h, v->stride_h, v->pad_h, v->out_h);
        for (int x = 0; x < v->w; x++, place++, dx += run) {
            seen_advance(&across, x, v->kernel_w, v->stride_w, v->pad_w, v->out_w);
            gather_pixel(kind, dx, &from, v, down, across, place, run);
            if (kind == POOL_L2)
                from.x += run;
        }
    }
}

static void maxpool_block_back(float *dx, const float *dy, const int32_t *winner, int blocks,
                               int lanes, const struct window *v) {
    size_t run = (size_t)v->c * (size_t)lanes;
    size_t in = (size_t)(v->h * v->w) * run, out = (size_t)(v->out_h * v->out_w) * run;
    for (int b = 0; b < blocks; b++, dx += in, dy += out, winner += out)
        gather_block(POOL_MAX, dx, (struct pooled){.dy = dy, .winner = winner}, v, run);
}

static void avgpool_block_back(float *dx, const float *dy, int blocks, int lanes,
                               const struct window *v) {
    size_t run = (size_t)v->c * (size_t)lanes;
    size_t in = (size_t)(v->h * v->w) * run, out = (size_t)(v->out_h * v->out_w) * run;
    for (int b = 0; b < blocks; b++, dx += in, dy += out)
        gather_block(POOL_MEAN, dx, (struct pooled){.dy = dy}, v, run);
}

static void l2pool_block_back(float *dx, const float *dy, const float *y, const float *x,
                              int blocks, int lanes, const struct window *v) {
    size_t run = (size_t)v->c * (size_t)lanes;
    size_t in = (size_t)(v->h * v->w) * run, out = (size_t)(v->out_h * v->out_w) * run;
    for (int b = 0; b < blocks; b++, dx += in, dy += out, y += out, x += in)
        gather_block(POOL_L2, dx, (struct pooled){.dy = dy, .y = y, .x = x}, v, run);
}

#endif
