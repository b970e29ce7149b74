// Max pools of blocks. What a window sees of a pixel is one contiguous run, so every step is
// elementwise over runs.
//
// The winner of a window is kept as its place in the window, in a byte: four bytes would double
// what is written and read. Windows of more than 255 pixels (`wide`) keep four. Where relu gives
// 0, the place is that of no pixel.
//
// The adjoint writes dx once, and clears nothing before: each pixel gathers what it won from the
// windows that saw it. For common windows, pixels are processed in tiles of a stride's size: the
// same few windows saw all of them, and are read once.
#ifndef ADAM_KERNELS_BLOCK_MAXPOOL_INC_H
#define ADAM_KERNELS_BLOCK_MAXPOOL_INC_H

#include <string.h>

#include "kernels/block/run.inc.h"
#include "kernels/blocks.h"
#include "kernels/window.h"

static bool window_wide(const struct window *v) {
    return maxpool_winner_size(v) > 1;
}

// No pixel's place.
__attribute__((always_inline)) static inline int nobody(bool wide) {
    return wide ? -1 : UINT8_MAX;
}

__attribute__((always_inline)) static inline size_t place_size(bool wide) {
    return wide ? sizeof(int32_t) : 1;
}

__attribute__((always_inline)) static inline void
store_places(bool wide, uint8_t *winners, size_t i, vector_int place, int count) {
    if (wide) {
        store_part_int((int32_t *)(void *)winners + i, place, count);
        return;
    }
    FAMILY_NARROW(winners + i, place, count);
}

__attribute__((always_inline)) static inline vector_int
load_places(bool wide, const uint8_t *winners, size_t i, int count) {
    if (wide)
        return load_part_int((const int32_t *)(const void *)winners + i, count);
    return FAMILY_WIDEN(winners + i, count);
}

// ---- Forward, one window at a time. A run's last vector overlaps the one before, where
// part of it is all there is left: there are no masks in the loops.

// The pixels of a window that exist: the first one's run and place in the window.
struct view {
    const float *x;
    size_t run, row; // floats from pixel to pixel, and from row to row
    int place, width;
};

// The largest values so far, and where they are.
struct maxima {
    vector most;
    vector_int place;
};

// Of equal ones the first; what is no number is not larger.
__attribute__((always_inline)) static inline struct maxima maxima_of(struct maxima first,
                                                                     struct maxima second) {
    return (struct maxima){FAMILY_LARGER(second.most, first.most),
                           FAMILY_WHERE_LARGER(second.most, first.most, second.place, first.place)};
}

// Place within its row of the window alone: fewer numbers for the registers to hold.
__attribute__((always_inline)) static inline struct maxima maxima_at(struct view view, int ky,
                                                                     int kx, size_t i, int count) {
    size_t at = (size_t)ky * view.row + (size_t)kx * view.run + i;
    return (struct maxima){load_part(view.x + at, count), (vector_int){0} + (view.place + kx)};
}

// What is no number stays none (portable/relu.inc.h).
__attribute__((always_inline)) static inline struct maxima maxima_relu(bool wide,
                                                                       struct maxima best) {
    vector zero = {0};
    vector_int none = (vector_int){0} + nobody(wide);
    return (struct maxima){FAMILY_LARGER(zero, best.most),
                           FAMILY_WHERE_LARGER(best.most, zero, best.place, none)};
}

// Row by row, so that few comparisons wait for others.
__attribute__((always_inline)) static inline void maxpool_vector(bool wide, int rows, int columns,
                                                                 bool relu, float *y,
                                                                 uint8_t *winners, struct view view,
                                                                 size_t i, int count) {
    struct maxima best = {0};
#pragma GCC unroll 3
    for (int ky = 0; ky < rows; ky++) {
        struct maxima row = maxima_at(view, ky, 0, i, count);
#pragma GCC unroll 3
        for (int kx = 1; kx < columns; kx++)
            row = maxima_of(row, maxima_at(view, ky, kx, i, count));
        row.place += ky * view.width;
        best = ky > 0 ? maxima_of(best, row) : row;
    }
    if (relu)
        best = maxima_relu(wide, best);
    store_part(y + i, best.most, count);
    store_places(wide, winners, i, best.place, count);
}

__attribute__((always_inline)) static inline void maxpool_run(bool wide, int rows, int columns,
                                                              bool relu, float *y, uint8_t *winners,
                                                              struct view view) {
    if (view.run < LANES) {
        maxpool_vector(wide, rows, columns, relu, y, winners, view, 0, (int)view.run);
        return;
    }
    for (size_t i = 0; i + LANES < view.run; i += LANES)
        maxpool_vector(wide, rows, columns, relu, y, winners, view, i, LANES);
    maxpool_vector(wide, rows, columns, relu, y, winners, view, view.run - LANES, LANES);
}

// Windows of nearly all nets have their loops unrolled, those that a border clips too.
__attribute__((always_inline)) static inline void maxpool_window(bool wide, bool relu, float *y,
                                                                 uint8_t *winners, struct view view,
                                                                 int rows, int columns) {
    if (wide)
        maxpool_run(true, rows, columns, relu, y, winners, view);
    else if (rows == 2 && columns == 2)
        maxpool_run(false, 2, 2, relu, y, winners, view);
    else if (rows == 2 && columns == 3)
        maxpool_run(false, 2, 3, relu, y, winners, view);
    else if (rows == 3 && columns == 2)
        maxpool_run(false, 3, 2, relu, y, winners, view);
    else if (rows == 3 && columns == 3)
        maxpool_run(false, 3, 3, relu, y, winners, view);
    else
        maxpool_run(false, rows, columns, relu, y, winners, view);
}

__attribute__((always_inline)) static inline void maxpool_picture(bool wide, bool relu, float *y,
                                                                  uint8_t *winners, const float *x,
                                                                  const struct window *v,
                                                                  size_t run) {
    struct view view = {.run = run, .row = (size_t)v->w * run, .width = v->kernel_w};
    for (int oy = 0; oy < v->out_h; oy++)
        for (int ox = 0; ox < v->out_w; ox++, y += run, winners += run * place_size(wide)) {
            struct window_span s = window_span(v, oy, ox);
            int top = oy * v->stride_h - v->pad_h, left = ox * v->stride_w - v->pad_w;
            view.x = x + (size_t)(s.y0 * v->w + s.x0) * run;
            view.place = (s.y0 - top) * v->kernel_w + s.x0 - left;
            maxpool_window(wide, relu, y, winners, view, s.y1 - s.y0, s.x1 - s.x0);
        }
}

static void maxpool_block(float *y, void *winner, const float *x, int blocks, int lanes,
                          const struct window *v, bool relu) {
    size_t run = (size_t)v->c * (size_t)lanes;
    size_t in = (size_t)(v->h * v->w) * run, out = (size_t)(v->out_h * v->out_w) * run;
    bool wide = window_wide(v);
    uint8_t *winners = winner;
    for (int b = 0; b < blocks; b++, y += out, winners += out * place_size(wide), x += in) {
        if (wide)
            maxpool_picture(true, relu, y, winners, x, v, run);
        else if (relu)
            maxpool_picture(false, true, y, winners, x, v, run);
        else
            maxpool_picture(false, false, y, winners, x, v, run);
    }
}

// ---- The adjoint.

// What it reads of one block.
struct won {
    const float *dy;
    const uint8_t *winners;
};

__attribute__((always_inline)) static inline vector won_error(vector_int winners, vector error,
                                                              int place) {
    return (vector)((winners == (vector_int){0} + place) & (vector_int)error);
}

// ---- One pixel at a time.

// The run of a pixel's error gradient, and its place in the first window that sees it, whose run
// lies at `first`. The windows below and beside that lie `row` and `run` floats further, and
// in them its place is less by `down` and `across`.
struct max_pixel {
    float *dx;
    size_t run, first, row;
    int place, down, across;
};

__attribute__((always_inline)) static inline void gather_won(bool wide, int rows, int columns,
                                                             struct max_pixel to, struct won from,
                                                             size_t i, int count) {
    vector sum = {0};
#pragma GCC unroll 2
    for (int oy = 0; oy < rows; oy++)
#pragma GCC unroll 2
        for (int ox = 0; ox < columns; ox++) {
            size_t at = to.first + (size_t)oy * to.row + (size_t)ox * to.run + i;
            sum +=
                won_error(load_places(wide, from.winners, at, count),
                          load_part(from.dy + at, count), to.place - oy * to.down - ox * to.across);
        }
    store_part(to.dx + i, sum, count);
}

__attribute__((always_inline)) static inline void
gather_won_run(bool wide, int rows, int columns, struct max_pixel to, struct won from) {
    if (to.run < LANES) {
        gather_won(wide, rows, columns, to, from, 0, (int)to.run);
        return;
    }
    for (size_t i = 0; i + LANES < to.run; i += LANES)
        gather_won(wide, rows, columns, to, from, i, LANES);
    gather_won(wide, rows, columns, to, from, to.run - LANES, LANES);
}

__attribute__((always_inline)) static inline void
gather_won_pixel(bool wide, int rows, int columns, struct max_pixel to, struct won from) {
    if (wide)
        gather_won_run(true, rows, columns, to, from);
    else if (rows == 1 && columns == 1)
        gather_won_run(false, 1, 1, to, from);
    else if (rows == 1 && columns == 2)
        gather_won_run(false, 1, 2, to, from);
    else if (rows == 2 && columns == 1)
        gather_won_run(false, 2, 1, to, from);
    else if (rows == 2 && columns == 2)
        gather_won_run(false, 2, 2, to, from);
    else
        gather_won_run(false, rows, columns, to, from);
}

// The pixels of a part of the picture.
static void pixels_back(bool wide, float *dx, struct won from, const struct window *v, size_t run,
                        struct window_span part) {
    struct max_pixel to = {.run = run,
                           .row = (size_t)v->out_w * run,
                           .down = v->stride_h * v->kernel_w,
                           .across = v->stride_w};
    struct seen left = windows_seeing(part.x0, v->kernel_w, v->stride_w, v->pad_w, v->out_w);
    for (int y = part.y0; y < part.y1; y++) {
        struct seen down = windows_seeing(y, v->kernel_h, v->stride_h, v->pad_h, v->out_h);
        int ky = y + v->pad_h - down.first * v->stride_h;
        struct seen across = left;
        for (int x = part.x0; x < part.x1; x++) {
            seen_advance(&across, x, v->kernel_w, v->stride_w, v->pad_w, v->out_w);
            int kx = x + v->pad_w - across.first * v->stride_w;
            to.place = ky * v->kernel_w + kx;
            to.first = (size_t)(down.first * v->out_w + across.first) * run;
            to.dx = dx + (size_t)(y * v->w + x) * run;
            gather_won_pixel(wide, down.last - down.first, across.last - across.first, to, from);
        }
    }
}

// ---- Tiles: stride x stride pixels, seen by the same windows, at most 3 x 3.

// The runs of its first pixel and of the last window that sees it; rows of pixels and of
// windows lie so many floats apart.
struct max_tile {
    float *dx;
    size_t run, row, last, windows_row;
};

__attribute__((always_inline)) static inline void max_tile_vector(int kernel, int stride,
                                                                  struct max_tile tile,
                                                                  struct won from, size_t i,
                                                                  int count) {
    vector_int winners[3][3] = {0};
    vector errors[3][3] = {0};
    int most = (kernel + stride - 1) / stride; // windows, each way
#pragma GCC unroll 3
    for (int up = 0; up < most; up++)
#pragma GCC unroll 3
        for (int left = 0; left < most; left++) {
            size_t at = tile.last - (size_t)up * tile.windows_row - (size_t)left * tile.run + i;
            winners[up][left] = load_places(false, from.winners, at, count);
            errors[up][left] = load_part(from.dy + at, count);
        }
#pragma GCC unroll 9
    for (int p = 0; p < stride * stride; p++) {
        int y = p / stride, x = p % stride;
        vector sum = {0};
#pragma GCC unroll 9
        for (int w = most * most - 1; w >= 0; w--) { // in the order of the windows
            int up = w / most, left = w % most;
            int ky = y + up * stride, kx = x + left * stride;
            if (ky < kernel && kx < kernel)
                sum += won_error(winners[up][left], errors[up][left], ky * kernel + kx);
        }
        store_part(tile.dx + (size_t)y * tile.row + (size_t)x * tile.run + i, sum, count);
    }
}

__attribute__((always_inline)) static inline void
max_tile_run(int kernel, int stride, struct max_tile tile, struct won from) {
    if (tile.run < LANES) {
        max_tile_vector(kernel, stride, tile, from, 0, (int)tile.run);
        return;
    }
    for (size_t i = 0; i + LANES < tile.run; i += LANES)
        max_tile_vector(kernel, stride, tile, from, i, LANES);
    max_tile_vector(kernel, stride, tile, from, tile.run - LANES, LANES);
}

// The tiles [first, last) of a row or column all of whose pixels and windows exist; they
// are numbered as the last window that sees them.
static struct seen tiles_whole(int size, int stride, int pad, int most, int out) {
    int first = (pad + stride - 1) / stride, last = (size + pad) / stride;
    first = first > most - 1 ? first : most - 1;
    last = last < out ? last : out;
    return (struct seen){first, last > first ? last : first};
}

__attribute__((always_inline)) static inline void
tiles_back(int kernel, int stride, float *dx, struct won from, const struct window *v, size_t run) {
    int most = (kernel + stride - 1) / stride;
    struct seen down = tiles_whole(v->h, stride, v->pad_h, most, v->out_h);
    struct seen across = tiles_whole(v->w, stride, v->pad_w, most, v->out_w);
    int left = across.first * stride - v->pad_w, right = across.last * stride - v->pad_w;
    struct max_tile tile = {
        .run = run, .row = (size_t)v->w * run, .windows_row = (size_t)v->out_w * run};
    if (down.first == down.last || across.first == across.last) {
        pixels_back(false, dx, from, v, run, (struct window_span){0, v->h, 0, v->w});
        return;
    }
    int y = down.first * stride - v->pad_h;
    pixels_back(false, dx, from, v, run, (struct window_span){0, y, 0, v->w});
    for (int oy = down.first; oy < down.last; oy++, y += stride) {
        pixels_back(false, dx, from, v, run, (struct window_span){y, y + stride, 0, left});
        tile.dx = dx + (size_t)(y * v->w + left) * run;
        tile.last = (size_t)(oy * v->out_w + across.first) * run;
        for (int ox = across.first; ox < across.last; ox++) {
            max_tile_run(kernel, stride, tile, from);
            tile.dx += (size_t)stride * run, tile.last += run;
        }
        pixels_back(false, dx, from, v, run, (struct window_span){y, y + stride, right, v->w});
    }
    pixels_back(false, dx, from, v, run, (struct window_span){y, v->h, 0, v->w});
}

static bool window_is(const struct window *v, int kernel, int stride) {
    return v->kernel_h == kernel && v->kernel_w == kernel && v->stride_h == stride &&
           v->stride_w == stride;
}

static void maxpool_block_back(float *dx, const float *dy, const void *winner, int blocks,
                               int lanes, const struct window *v) {
    size_t run = (size_t)v->c * (size_t)lanes;
    size_t in = (size_t)(v->h * v->w) * run, out = (size_t)(v->out_h * v->out_w) * run;
    bool wide = window_wide(v);
    struct won from = {dy, winner};
    for (int b = 0; b < blocks;
         b++, dx += in, from.dy += out, from.winners += out * place_size(wide)) {
        if (window_is(v, 2, 2))
            tiles_back(2, 2, dx, from, v, run);
        else if (window_is(v, 3, 1))
            tiles_back(3, 1, dx, from, v, run);
        else if (window_is(v, 3, 2))
            tiles_back(3, 2, dx, from, v, run);
        else if (window_is(v, 3, 3))
            tiles_back(3, 3, dx, from, v, run);
        else
            pixels_back(wide, dx, from, v, run, (struct window_span){0, v->h, 0, v->w});
    }
}

#endif
