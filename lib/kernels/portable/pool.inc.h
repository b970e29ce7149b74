// Pools. A window is clipped to the picture: padding takes no part.
#ifndef ADAM_KERNELS_PORTABLE_POOL_INC_H
#define ADAM_KERNELS_PORTABLE_POOL_INC_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernels/portable/relu.inc.h"
#include "kernels/shapes.h"
#include "kernels/window.h"

// The maximum of one window, clipped to the picture.
static inline void maxpool_one(float *y, int32_t *winner, const float *x, const struct window *v,
                               int oy, int ox) {
    struct window_span s = window_span(v, oy, ox);
    int best = s.y0 * v->w + s.x0;
    for (int py = s.y0; py < s.y1; py++)
        for (int px = s.x0; px < s.x1; px++)
            if (x[py * v->w + px] > x[best])
                best = py * v->w + px;
    *y = x[best];
    *winner = best;
}

// `count` windows in a row, none clipped; the first begins at x[place]. With size
// and stride constants where it is called, the taps unroll and the loop over
// windows vectorises; one at a time they are mispredicted branches.
__attribute__((always_inline)) static inline void
maxpool_run(int size, int stride, float *restrict y, int32_t *restrict winner,
            const float *restrict x, int place, int width, int count) {
    for (int i = 0; i < count; i++) {
        int32_t best = place + i * stride;
        float most = x[best];
#pragma GCC unroll 3
        for (int ky = 0; ky < size; ky++)
#pragma GCC unroll 3
            for (int kx = 0; kx < size; kx++) {
                int32_t at = place + i * stride + ky * width + kx;
                bool wins = x[at] > most;
                most = wins ? x[at] : most;
                best = wins ? at : best;
            }
        y[i] = most;
        winner[i] = best;
    }
}

static void maxpool_run_2(float *y, int32_t *winner, const float *x, int place, int width,
                          int count) {
    maxpool_run(2, 2, y, winner, x, place, width, count);
}

static void maxpool_run_3(float *y, int32_t *winner, const float *x, int place, int width,
                          int count) {
    maxpool_run(3, 2, y, winner, x, place, width, count);
}

typedef void maxpool_function(float *, int32_t *, const float *, int, int, int);

// The two windows of nearly every net; others go one at a time.
static maxpool_function *maxpool_special(const struct window *v) {
    if (v->kernel_h != v->kernel_w || v->stride_w != 2)
        return NULL;
    return v->kernel_w == 2 ? maxpool_run_2 : v->kernel_w == 3 ? maxpool_run_3 : NULL;
}

static void maxpool_row(float *y, int32_t *winner, const float *x, const struct window *v, int oy) {
    maxpool_function *run = maxpool_special(v);
    int top = oy * v->stride_h - v->pad_h;
    int first = (v->pad_w + v->stride_w - 1) / v->stride_w;
    int last = (v->w + v->pad_w - v->kernel_w) / v->stride_w + 1;
    if (!run || top < 0 || top + v->kernel_h > v->h || last <= first)
        first = last = v->out_w;
    for (int ox = 0; ox < first; ox++)
        maxpool_one(y + ox, winner + ox, x, v, oy, ox);
    if (last > first)
        run(y + first, winner + first, x, top * v->w + first * v->stride_w - v->pad_w, v->w,
            last - first);
    for (int ox = last; ox < v->out_w; ox++)
        maxpool_one(y + ox, winner + ox, x, v, oy, ox);
}

static void maxpool_relu(float *y, int32_t *winner, int n) {
    for (int i = 0; i < n; i++)
        winner[i] = y[i] > 0 ? winner[i] : -1;
    relu(y, (size_t)n);
}

static void maxpool(float *y, int32_t *winner, const float *x, int n, const struct window *v,
                    bool then_relu) {
    for (int i = 0; i < n * v->c; i++, x += v->h * v->w)
        for (int oy = 0; oy < v->out_h; oy++, y += v->out_w, winner += v->out_w) {
            maxpool_row(y, winner, x, v, oy);
            if (then_relu)
                maxpool_relu(y, winner, v->out_w);
        }
}

static void maxpool_back(float *dx, const float *dy, const int32_t *winner, int n,
                         const struct window *v) {
    int in = v->h * v->w, out = v->out_h * v->out_w;
    for (int i = 0; i < n * v->c; i++, dx += in, dy += out, winner += out) {
        memset(dx, 0, (size_t)in * sizeof *dx);
        for (int p = 0; p < out; p++)
            if (winner[p] >= 0)
                dx[winner[p]] += dy[p];
    }
}

static void avgpool(float *y, const float *x, int n, const struct window *v) {
    int first, last, stride = v->stride_w;
    for (int i = 0; i < n * v->c; i++, x += v->h * v->w)
        for (int oy = 0; oy < v->out_h; oy++, y += v->out_w) {
            struct window_span s = window_span(v, oy, 0);
            for (int ox = 0; ox < v->out_w; ox++)
                y[ox] = 0;
            for (int py = s.y0; py < s.y1; py++)
                for (int kx = 0; kx < v->kernel_w; kx++) {
                    const float *row = x + py * v->w + kx - v->pad_w;
                    tap_range(kx - v->pad_w, stride, v->w, v->out_w, &first, &last);
                    for (int ox = first; ox < last; ox++)
                        y[ox] += row[ox * stride];
                }
            for (int ox = 0; ox < v->out_w; ox++)
                y[ox] *= span_mean_factor(window_span(v, oy, ox));
        }
}

static void avgpool_back(float *dx, const float *dy, int n, const struct window *v) {
    memset(dx, 0, (size_t)n * (size_t)(v->c * v->h * v->w) * sizeof *dx);
    for (int i = 0; i < n * v->c; i++, dx += v->h * v->w)
        for (int oy = 0; oy < v->out_h; oy++)
            for (int ox = 0; ox < v->out_w; ox++) {
                struct window_span s = window_span(v, oy, ox);
                float share = *dy++ * span_mean_factor(s);
                for (int py = s.y0; py < s.y1; py++)
                    for (int px = s.x0; px < s.x1; px++)
                        dx[py * v->w + px] += share;
            }
}

static void l2pool(float *y, const float *x, int n, const struct window *v) {
    for (int i = 0; i < n * v->c; i++, x += v->h * v->w)
        for (int oy = 0; oy < v->out_h; oy++)
            for (int ox = 0; ox < v->out_w; ox++) {
                struct window_span s = window_span(v, oy, ox);
                float sum = 0;
                for (int py = s.y0; py < s.y1; py++)
                    for (int px = s.x0; px < s.x1; px++)
                        sum += x[py * v->w + px] * x[py * v->w + px];
                *y++ = sqrtf(sum);
            }
}

// dy/dx = x / y, and nothing where all of the window is zero.
static void l2pool_back(float *dx, const float *dy, const float *y, const float *x, int n,
                        const struct window *v) {
    memset(dx, 0, (size_t)n * (size_t)(v->c * v->h * v->w) * sizeof *dx);
    for (int i = 0; i < n * v->c; i++, dx += v->h * v->w, x += v->h * v->w)
        for (int oy = 0; oy < v->out_h; oy++)
            for (int ox = 0; ox < v->out_w; ox++, dy++, y++) {
                struct window_span s = window_span(v, oy, ox);
                float factor = *y > 0 ? *dy / *y : 0;
                for (int py = s.y0; py < s.y1; py++)
                    for (int px = s.x0; px < s.x1; px++)
                        dx[py * v->w + px] += factor * x[py * v->w + px];
            }
}

#endif
