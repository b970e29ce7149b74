// Single patches of pictures: what one window sees.
#ifndef ADAM_KERNELS_PORTABLE_PATCH_INC_H
#define ADAM_KERNELS_PORTABLE_PATCH_INC_H

#include <stddef.h>
#include <string.h>

#include "kernels/shapes.h"

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
