// Convolution as columns (im2col) times a matrix, for shapes that no other way takes. One picture
// at a time: the columns of a whole mini-batch would leave the cache.
#ifndef ADAM_KERNELS_PORTABLE_CONV_COLUMNS_INC_H
#define ADAM_KERNELS_PORTABLE_CONV_COLUMNS_INC_H

#include <string.h>

#include "kernels/conv.h"
#include "kernels/conv_sizes.h"
#include "kernels/window.h"

static void im2col(float *column, const float *picture, const struct window *v) {
    for (int c = 0; c < v->c; c++, picture += v->h * v->w)
        for (int ky = 0; ky < v->kernel_h; ky++)
            for (int kx = 0; kx < v->kernel_w; kx++) {
                int first, last, down = ky * (v->skip_h + 1) - v->pad_h;
                int along = kx * (v->skip_w + 1) - v->pad_w;
                tap_range(along, v->stride_w, v->w, v->out_w, &first, &last);
                for (int oy = 0; oy < v->out_h; oy++, column += v->out_w) {
                    int y = oy * v->stride_h + down;
                    if (y < 0 || y >= v->h) {
                        memset(column, 0, (size_t)v->out_w * sizeof *column);
                        continue;
                    }
                    const float *row = picture + (ptrdiff_t)y * v->w + along;
                    for (int ox = 0; ox < first; ox++)
                        column[ox] = 0;
                    if (v->stride_w == 1)
                        memcpy(column + first, row + first, (size_t)(last - first) * sizeof *row);
                    else
                        for (int ox = first; ox < last; ox++)
                            column[ox] = row[ox * v->stride_w];
                    for (int ox = last; ox < v->out_w; ox++)
                        column[ox] = 0;
                }
            }
}

static void col2im(float *picture, const float *column, const struct window *v) {
    for (int c = 0; c < v->c; c++, picture += v->h * v->w)
        for (int ky = 0; ky < v->kernel_h; ky++)
            for (int kx = 0; kx < v->kernel_w; kx++) {
                int first, last, down = ky * (v->skip_h + 1) - v->pad_h;
                int along = kx * (v->skip_w + 1) - v->pad_w;
                tap_range(along, v->stride_w, v->w, v->out_w, &first, &last);
                for (int oy = 0; oy < v->out_h; oy++, column += v->out_w) {
                    int y = oy * v->stride_h + down;
                    if (y < 0 || y >= v->h)
                        continue;
                    float *row = picture + (ptrdiff_t)y * v->w + along;
                    if (v->stride_w == 1)
                        for (int ox = first; ox < last; ox++)
                            row[ox] += column[ox];
                    else
                        for (int ox = first; ox < last; ox++)
                            row[ox * v->stride_w] += column[ox];
                }
            }
}

// A 1x1 kernel at stride 1 sees the picture itself: it is its own columns.
static const float *columns(float *scratch, const float *picture, const struct window *window) {
    if (window_pointwise(window))
        return picture;
    im2col(scratch, picture, window);
    return scratch;
}

// The sizes of one group's matrices: weights (maps x taps), columns (taps x pixels).
struct product {
    int maps, taps, pixels;
};

static struct product group_product(const struct convolution *conv) {
    const struct window *v = &conv->window;
    return (struct product){
        .maps = conv->maps / conv->groups,
        .taps = v->c / conv->groups * v->kernel_h * v->kernel_w,
        .pixels = v->out_h * v->out_w,
    };
}

static void conv_columns(float *y, const float *x, const float *weights, int n,
                         const struct convolution *conv, float *scratch) {
    struct product p = group_product(conv);
    for (int i = 0; i < n; i++) {
        const float *column =
            columns(scratch, x + (size_t)i * window_in(&conv->window), &conv->window);
        for (int g = 0; g < conv->groups; g++) {
            size_t map = (size_t)(g * p.maps);
            FAMILY_GEMM(false, false, p.maps, p.pixels, p.taps, 1, weights + map * (size_t)p.taps,
                        p.taps, column + (size_t)(g * p.taps) * (size_t)p.pixels, p.pixels, 0,
                        y + ((size_t)i * (size_t)conv->maps + map) * (size_t)p.pixels, p.pixels);
        }
    }
}

// dx = the adjoint of the columns of W^T dy
static void conv_columns_back_input(float *dx, const float *dy, const float *weights, int n,
                                    const struct convolution *conv, float *scratch) {
    struct product p = group_product(conv);
    size_t in = window_in(&conv->window);
    for (int i = 0; i < n; i++, dx += in) {
        float *column = window_pointwise(&conv->window) ? dx : scratch;
        for (int g = 0; g < conv->groups; g++) {
            size_t map = (size_t)(g * p.maps);
            FAMILY_GEMM(true, false, p.taps, p.pixels, p.maps, 1, weights + map * (size_t)p.taps,
                        p.taps, dy + ((size_t)i * (size_t)conv->maps + map) * (size_t)p.pixels,
                        p.pixels, 0, column + (size_t)(g * p.taps) * (size_t)p.pixels, p.pixels);
        }
        if (column == dx)
            continue;
        memset(dx, 0, in * sizeof *dx);
        col2im(dx, column, &conv->window);
    }
}

// dW = the sum over pictures of dy columns^T
static void conv_columns_back_weights(float *dweights, const float *dy, const float *x, int n,
                                      const struct convolution *conv, float *scratch) {
    struct product p = group_product(conv);
    for (int i = 0; i < n; i++) {
        const float *column =
            columns(scratch, x + (size_t)i * window_in(&conv->window), &conv->window);
        for (int g = 0; g < conv->groups; g++) {
            size_t map = (size_t)(g * p.maps);
            FAMILY_GEMM(false, true, p.maps, p.taps, p.pixels, 1,
                        dy + ((size_t)i * (size_t)conv->maps + map) * (size_t)p.pixels, p.pixels,
                        column + (size_t)(g * p.taps) * (size_t)p.pixels, p.pixels, i ? 1 : 0,
                        dweights + map * (size_t)p.taps, p.taps);
        }
    }
}

static const char *conv_columns_way(enum conv_pass pass, const struct convolution *conv,
                                    int lanes) {
    (void)pass, (void)lanes;
    return window_pointwise(&conv->window) ? "product" : "columns";
}

#endif
