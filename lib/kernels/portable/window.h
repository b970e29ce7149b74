// Windows over pictures: columns for matrix products, and single patches.
#ifndef ADAM_KERNELS_PORTABLE_WINDOW_H
#define ADAM_KERNELS_PORTABLE_WINDOW_H

#include <stddef.h>
#include <string.h>

#include "kernels/kernels.h"

// The part [first, last) of the output positions at which a tap falls on the
// picture, not on padding: 0 <= o * stride + shift < size.
static inline void tap_range(int shift, int stride, int size, int out, int *first, int *last) {
    int begin = shift < 0 ? (-shift + stride - 1) / stride : 0;
    int end = size > shift ? (size - shift + stride - 1) / stride : 0;
    *first = begin < out ? begin : out;
    *last = end < out ? end : out;
    if (*last < *first)
        *last = *first;
}

static void im2col(float *column, const float *picture, const struct window *v) {
    for (int c = 0; c < v->c; c++, picture += v->h * v->w)
        for (int ky = 0; ky < v->kernel_h; ky++)
            for (int kx = 0; kx < v->kernel_w; kx++) {
                int first, last;
                tap_range(kx - v->pad_w, v->stride_w, v->w, v->out_w, &first, &last);
                for (int oy = 0; oy < v->out_h; oy++, column += v->out_w) {
                    int y = oy * v->stride_h + ky - v->pad_h;
                    if (y < 0 || y >= v->h) {
                        memset(column, 0, (size_t)v->out_w * sizeof *column);
                        continue;
                    }
                    const float *row = picture + (ptrdiff_t)y * v->w + kx - v->pad_w;
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
                int first, last;
                tap_range(kx - v->pad_w, v->stride_w, v->w, v->out_w, &first, &last);
                for (int oy = 0; oy < v->out_h; oy++, column += v->out_w) {
                    int y = oy * v->stride_h + ky - v->pad_h;
                    if (y < 0 || y >= v->h)
                        continue;
                    float *row = picture + (ptrdiff_t)y * v->w + kx - v->pad_w;
                    if (v->stride_w == 1)
                        for (int ox = first; ox < last; ox++)
                            row[ox] += column[ox];
                    else
                        for (int ox = first; ox < last; ox++)
                            row[ox * v->stride_w] += column[ox];
                }
            }
}

static void patch(float *rows, const float *pictures, int n, const struct window *v, int out_y,
                  int out_x) {
    int y0 = out_y * v->stride_h - v->pad_h, x0 = out_x * v->stride_w - v->pad_w;
    for (int i = 0; i < n * v->c; i++, pictures += v->h * v->w)
        for (int y = y0; y < y0 + v->kernel_h; y++)
            for (int x = x0; x < x0 + v->kernel_w; x++)
                *rows++ = y >= 0 && y < v->h && x >= 0 && x < v->w ? pictures[y * v->w + x] : 0;
}

static void patch_add(float *pictures, const float *rows, int n, const struct window *v, int out_y,
                      int out_x) {
    int y0 = out_y * v->stride_h - v->pad_h, x0 = out_x * v->stride_w - v->pad_w;
    for (int i = 0; i < n * v->c; i++, pictures += v->h * v->w)
        for (int y = y0; y < y0 + v->kernel_h; y++)
            for (int x = x0; x < x0 + v->kernel_w; x++, rows++)
                if (y >= 0 && y < v->h && x >= 0 && x < v->w)
                    pictures[y * v->w + x] += *rows;
}

#endif
