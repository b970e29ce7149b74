// Pools of blocks. What a window sees of a pixel is one contiguous run, so every
// step is elementwise over runs. The adjoints write dx once, and clear nothing
// before: where windows tile the picture, each gives to its pixels; where they
// overlap, each pixel gathers from the windows that saw it.
//
// Windows of 2 x 2 and 3 x 3 pixels, and pixels in up to 2 x 2 windows, have their
// loops unrolled: nearly all of nearly every net. What those loops need is passed by
// value: a store of a vector may alias anything, so whatever is behind a pointer is
// read again after it (the adjoint of a 3x3 mean at stride 2 took 2.8 times as long).
#ifndef ADAM_KERNELS_BLOCK_POOL_H
#define ADAM_KERNELS_BLOCK_POOL_H

#include <math.h>

#include "kernels/block/run.h"
#include "kernels/portable/window.h"

enum pool { POOL_MAX, POOL_MEAN, POOL_L2 };

// ---- Forward, one output pixel at a time.

// What one window sees: the pixel numbered `place` and those beside and below it.
struct pool_view {
    const float *x;  // that pixel's run
    size_t run, row; // floats from pixel to pixel, and from row to row
    int place, width;
    float factor; // of the sum
    bool relu;    // of the maximum
};

// The largest values so far, and where they are.
struct maxima {
    vector most;
    vector_int place;
};

__attribute__((always_inline)) static inline struct maxima maxima_at(struct pool_view view, int ky,
                                                                     int kx, size_t i, int count) {
    size_t at = (size_t)ky * view.row + (size_t)kx * view.run + i;
    return (struct maxima){load_part(view.x + at, count),
                           (vector_int){0} + (view.place + ky * view.width + kx)};
}

// Of equal ones the first.
__attribute__((always_inline)) static inline struct maxima maxima_of(struct maxima first,
                                                                     struct maxima second) {
    vector_int wins = second.most > first.most;
    return (struct maxima){choose(wins, second.most, first.most),
                           choose_int(wins, second.place, first.place)};
}

// Where none is above 0 nobody wins; what is no number stays none (portable/relu.h).
__attribute__((always_inline)) static inline struct maxima maxima_relu(struct maxima best) {
    vector_int nobody = (vector_int){0} - 1;
    return (struct maxima){choose(best.most < 0, (vector){0}, best.most),
                           choose_int(best.most > 0, best.place, nobody)};
}

// Row by row, so that few comparisons wait for others.
__attribute__((always_inline)) static inline void maxpool_vector(int rows, int columns, float *y,
                                                                 int32_t *winner,
                                                                 struct pool_view view, size_t i,
                                                                 int count) {
    struct maxima best = {0};
#pragma GCC unroll 3
    for (int ky = 0; ky < rows; ky++) {
        struct maxima row = maxima_at(view, ky, 0, i, count);
#pragma GCC unroll 3
        for (int kx = 1; kx < columns; kx++)
            row = maxima_of(row, maxima_at(view, ky, kx, i, count));
        if (ky > 0)
            row = maxima_of(best, row);
        best = row;
    }
    if (view.relu)
        best = maxima_relu(best);
    store_part(y + i, best.most, count);
    store_part_int(winner + i, best.place, count);
}

__attribute__((always_inline)) static inline void sumpool_vector(bool squares, int rows,
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
            if (squares)
                value *= value;
            sum += value;
        }
    store_part(y + i, sum * view.factor, count);
}

__attribute__((always_inline)) static inline void pool_vector(enum pool kind, int rows, int columns,
                                                              float *y, int32_t *winner,
                                                              struct pool_view view, size_t i,
                                                              int count) {
    if (kind == POOL_MAX)
        maxpool_vector(rows, columns, y, winner, view, i, count);
    else
        sumpool_vector(kind == POOL_L2, rows, columns, y, view, i, count);
}

__attribute__((always_inline)) static inline void
pool_run(enum pool kind, int rows, int columns, float *y, int32_t *winner, struct pool_view view) {
    size_t i = 0;
    for (; i + LANES <= view.run; i += LANES)
        pool_vector(kind, rows, columns, y, winner, view, i, LANES);
    if (i < view.run)
        pool_vector(kind, rows, columns, y, winner, view, i, (int)(view.run - i));
    if (kind == POOL_L2)
        for (i = 0; i < view.run; i++)
            y[i] = sqrtf(y[i]);
}

// What the factor of a mean depends on: one over the pixels of the window. A
// division takes longer than a short run, so it is done once for whole windows.
struct means {
    const struct window *v;
    float whole;
};

static struct means means_of(const struct window *v) {
    return (struct means){v, 1.0f / (float)(v->kernel_h * v->kernel_w)};
}

static inline float mean_factor(struct means means, int oy, int ox) {
    struct span s = window_span(means.v, oy, ox);
    int pixels = (s.y1 - s.y0) * (s.x1 - s.x0);
    return pixels == means.v->kernel_h * means.v->kernel_w ? means.whole : 1.0f / (float)pixels;
}

__attribute__((always_inline)) static inline void pool_pixel(enum pool kind, float *y,
                                                             int32_t *winner, const float *x,
                                                             struct means means, size_t run, int oy,
                                                             int ox, bool relu) {
    struct span s = window_span(means.v, oy, ox);
    int rows = s.y1 - s.y0, columns = s.x1 - s.x0, width = means.v->w, place = s.y0 * width + s.x0;
    struct pool_view view = {.x = x + (size_t)place * run,
                             .run = run,
                             .row = (size_t)width * run,
                             .place = place,
                             .width = width,
                             .factor = kind == POOL_MEAN ? mean_factor(means, oy, ox) : 1,
                             .relu = relu};
    if (rows == 2 && columns == 2)
        pool_run(kind, 2, 2, y, winner, view);
    else if (rows == 3 && columns == 3)
        pool_run(kind, 3, 3, y, winner, view);
    else
        pool_run(kind, rows, columns, y, winner, view);
}

__attribute__((always_inline)) static inline void pool_block(enum pool kind, float *y,
                                                             int32_t *winner, const float *x,
                                                             int blocks, int lanes,
                                                             const struct window *v, bool relu) {
    size_t run = (size_t)v->c * (size_t)lanes, in = (size_t)(v->h * v->w) * run;
    struct means means = means_of(v);
    for (int b = 0; b < blocks; b++, x += in)
        for (int oy = 0; oy < v->out_h; oy++)
            for (int ox = 0; ox < v->out_w; ox++, y += run) {
                pool_pixel(kind, y, winner, x, means, run, oy, ox, relu);
                if (kind == POOL_MAX)
                    winner += run;
            }
}

static void maxpool_block(float *y, int32_t *winner, const float *x, int blocks, int lanes,
                          const struct window *v, bool relu) {
    pool_block(POOL_MAX, y, winner, x, blocks, lanes, v, relu);
}

static void avgpool_block(float *y, const float *x, int blocks, int lanes, const struct window *v) {
    pool_block(POOL_MEAN, y, NULL, x, blocks, lanes, v, false);
}

static void l2pool_block(float *y, const float *x, int blocks, int lanes, const struct window *v) {
    pool_block(POOL_L2, y, NULL, x, blocks, lanes, v, false);
}

// ---- The adjoints.

// What an adjoint reads of one block.
struct pooled {
    const float *dy, *y;
    const int32_t *winner;
};

// What a window, whose run is at `at`, gives to its pixels.
__attribute__((always_inline)) static inline vector window_error(enum pool kind, struct pooled from,
                                                                 size_t at, int count) {
    vector error = load_part(from.dy + at, count);
    if (kind != POOL_L2)
        return error;
    vector root = load_part(from.y + at, count);
    return (vector)((root > 0) & (vector_int)(error / root)); // no slope where all is zero
}

// The part of it that pixel `place` gets as the winner.
__attribute__((always_inline)) static inline vector winner_error(struct pooled from, vector error,
                                                                 size_t at, int place, int count) {
    return (vector)((load_part_int(from.winner + at, count) == place) & (vector_int)error);
}

// ---- Windows that tile the picture: one window at a time, written to its pixels.

static bool window_tiles(const struct window *v) {
    return v->kernel_h == v->stride_h && v->kernel_w == v->stride_w && !v->pad_h && !v->pad_w;
}

// The window at `at`: its first pixel, and the runs of that one's error and, for
// POOL_L2, of itself; from pixel to pixel and from row to row.
struct tile {
    size_t at, run, row;
    int place, width;
    float *dx;
    const float *x;
    float factor; // of a mean
};

__attribute__((always_inline)) static inline void spread_vector(enum pool kind, int rows,
                                                                int columns, struct tile tile,
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
            int place = tile.place + ky * tile.width + kx;
            vector part = error;
            if (kind == POOL_MAX)
                part = winner_error(from, error, tile.at + i, place, count);
            if (kind == POOL_L2)
                part *= load_part(tile.x + to, count);
            store_part(tile.dx + to, part, count);
        }
}

__attribute__((always_inline)) static inline void spread_run(enum pool kind, int rows, int columns,
                                                             struct tile tile, struct pooled from) {
    size_t i = 0;
    for (; i + LANES <= tile.run; i += LANES)
        spread_vector(kind, rows, columns, tile, from, i, LANES);
    if (i < tile.run)
        spread_vector(kind, rows, columns, tile, from, i, (int)(tile.run - i));
}

// Zeros where no window stands: right of pixel `columns` of the `rows` first rows,
// and below them.
static void clear_rest(float *dx, const struct window *v, size_t run, int rows, int columns) {
    size_t row = (size_t)v->w * run, covered = (size_t)columns * run;
    for (int y = 0; y < rows; y++)
        memset(dx + (size_t)y * row + covered, 0, (row - covered) * sizeof *dx);
    memset(dx + (size_t)rows * row, 0, (size_t)(v->h - rows) * row * sizeof *dx);
}

__attribute__((always_inline)) static inline void spread_block(enum pool kind, float *dx,
                                                               struct pooled from, const float *x,
                                                               const struct window *v, size_t run) {
    struct tile tile = {.run = run, .row = (size_t)v->w * run, .width = v->w};
    struct means means = means_of(v);
    struct span s = {0};
    for (int oy = 0; oy < v->out_h; oy++)
        for (int ox = 0; ox < v->out_w; ox++, tile.at += run) {
            s = window_span(v, oy, ox);
            tile.place = s.y0 * v->w + s.x0;
            tile.dx = dx + (size_t)tile.place * run;
            if (kind == POOL_L2)
                tile.x = x + (size_t)tile.place * run;
            if (kind == POOL_MEAN)
                tile.factor = mean_factor(means, oy, ox);
            if (s.y1 - s.y0 == 2 && s.x1 - s.x0 == 2)
                spread_run(kind, 2, 2, tile, from);
            else
                spread_run(kind, s.y1 - s.y0, s.x1 - s.x0, tile, from);
        }
    clear_rest(dx, v, run, s.y1, s.x1);
}

// ---- Other windows: one input pixel at a time, gathered from the windows that saw it.

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

// An input pixel: its number, and the runs of its error and, for POOL_L2, itself.
// The windows that see it: the first one and the place of its run; the next row of
// windows lies `row` floats further.
struct pixel {
    int place, top, left;
    float *dx;
    const float *x;
    size_t run, first, row;
};

// `factors` of a mean, row by row; NULL when they are too many to be kept.
__attribute__((always_inline)) static inline void
gather_vector(enum pool kind, int rows, int columns, const float *factors, struct pixel to,
              struct pooled from, struct means means, size_t i, int count) {
    vector sum = {0};
#pragma GCC unroll 2
    for (int oy = 0; oy < rows; oy++)
#pragma GCC unroll 2
        for (int ox = 0; ox < columns; ox++) {
            size_t at = to.first + (size_t)oy * to.row + (size_t)ox * to.run + i;
            vector error = window_error(kind, from, at, count);
            if (kind == POOL_MAX)
                error = winner_error(from, error, at, to.place, count);
            if (kind == POOL_MEAN)
                error *= factors ? factors[oy * columns + ox]
                                 : mean_factor(means, to.top + oy, to.left + ox);
            sum += error;
        }
    if (kind == POOL_L2)
        sum *= load_part(to.x + i, count);
    store_part(to.dx + i, sum, count);
}

__attribute__((always_inline)) static inline void gather_run(enum pool kind, int rows, int columns,
                                                             const float *factors, struct pixel to,
                                                             struct pooled from,
                                                             struct means means) {
    size_t i = 0;
    for (; i + LANES <= to.run; i += LANES)
        gather_vector(kind, rows, columns, factors, to, from, means, i, LANES);
    if (i < to.run)
        gather_vector(kind, rows, columns, factors, to, from, means, i, (int)(to.run - i));
}

// rows, columns: constants of at most 2.
__attribute__((always_inline)) static inline void gather_few(enum pool kind, int rows, int columns,
                                                             struct pixel to, struct pooled from,
                                                             struct means means) {
    float factors[4];
    if (kind == POOL_MEAN)
#pragma GCC unroll 4
        for (int i = 0; i < rows * columns; i++)
            factors[i] = mean_factor(means, to.top + i / columns, to.left + i % columns);
    gather_run(kind, rows, columns, factors, to, from, means);
}

__attribute__((always_inline)) static inline void gather_pixel(enum pool kind, int rows,
                                                               int columns, struct pixel to,
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

__attribute__((always_inline)) static inline void gather_block(enum pool kind, float *dx,
                                                               struct pooled from, const float *x,
                                                               const struct window *v, size_t run) {
    struct pixel to = {.run = run, .dx = dx, .x = x, .row = (size_t)v->out_w * run};
    struct means means = means_of(v);
    struct seen down = {0};
    for (int row = 0; row < v->h; row++) {
        struct seen across = {0};
        seen_advance(&down, row, v->kernel_h, v->stride_h, v->pad_h, v->out_h);
        to.top = down.first;
        for (int column = 0; column < v->w; column++, to.place++, to.dx += run) {
            seen_advance(&across, column, v->kernel_w, v->stride_w, v->pad_w, v->out_w);
            to.left = across.first;
            to.first = (size_t)to.top * to.row + (size_t)to.left * run;
            gather_pixel(kind, down.last - down.first, across.last - across.first, to, from, means);
            if (kind == POOL_L2)
                to.x += run;
        }
    }
}

__attribute__((always_inline)) static inline void
pool_block_back(enum pool kind, float *dx, struct pooled from, const float *x,
                const struct window *v, size_t run) {
    if (window_tiles(v))
        spread_block(kind, dx, from, x, v, run);
    else
        gather_block(kind, dx, from, x, v, run);
}

static void maxpool_block_back(float *dx, const float *dy, const int32_t *winner, int blocks,
                               int lanes, const struct window *v) {
    size_t run = (size_t)v->c * (size_t)lanes;
    size_t in = (size_t)(v->h * v->w) * run, out = (size_t)(v->out_h * v->out_w) * run;
    for (int b = 0; b < blocks; b++, dx += in, dy += out, winner += out)
        pool_block_back(POOL_MAX, dx, (struct pooled){.dy = dy, .winner = winner}, NULL, v, run);
}

static void avgpool_block_back(float *dx, const float *dy, int blocks, int lanes,
                               const struct window *v) {
    size_t run = (size_t)v->c * (size_t)lanes;
    size_t in = (size_t)(v->h * v->w) * run, out = (size_t)(v->out_h * v->out_w) * run;
    for (int b = 0; b < blocks; b++, dx += in, dy += out)
        pool_block_back(POOL_MEAN, dx, (struct pooled){.dy = dy}, NULL, v, run);
}

static void l2pool_block_back(float *dx, const float *dy, const float *y, const float *x,
                              int blocks, int lanes, const struct window *v) {
    size_t run = (size_t)v->c * (size_t)lanes;
    size_t in = (size_t)(v->h * v->w) * run, out = (size_t)(v->out_h * v->out_w) * run;
    for (int b = 0; b < blocks; b++, dx += in, dy += out, y += out, x += in)
        pool_block_back(POOL_L2, dx, (struct pooled){.dy = dy, .y = y}, x, v, run);
}

#endif
