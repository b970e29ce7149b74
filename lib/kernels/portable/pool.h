// Pools. A window is clipped to the picture: padding takes no part.
#ifndef ADAM_KERNELS_PORTABLE_POOL_H
#define ADAM_KERNELS_PORTABLE_POOL_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernels/kernels.h"

struct span { // rows and columns [y0, y1) x [x0, x1) of one window
    int y0, y1, x0, x1;
};

static inline struct span window_span(const struct window *v, int oy, int ox) {
    int y = oy * v->stride_h - v->pad_h, x = ox * v->stride_w - v->pad_w;
    int y_end = y + v->kernel_h, x_end = x + v->kernel_w;
    return (struct span){y > 0 ? y : 0, y_end < v->h ? y_end : v->h, x > 0 ? x : 0,
                         x_end < v->w ? x_end : v->w};
}

static inline float span_mean_factor(struct span s) {
    return 1.0f / (float)((s.y1 - s.y0) * (s.x1 - s.x0));
}

static void maxpool(float *y, int32_t *winner, const float *x, int n, const struct window *v) {
    for (int i = 0; i < n * v->c; i++, x += v->h * v->w)
        for (int oy = 0; oy < v->out_h; oy++)
            for (int ox = 0; ox < v->out_w; ox++) {
                struct span s = window_span(v, oy, ox);
                int best = s.y0 * v->w + s.x0;
                for (int py = s.y0; py < s.y1; py++)
                    for (int px = s.x0; px < s.x1; px++)
                        if (x[py * v->w + px] > x[best])
                            best = py * v->w + px;
                *y++ = x[best];
                *winner++ = best;
            }
}

static void maxpool_back(float *dx, const float *dy, const int32_t *winner, int n,
                         const struct window *v) {
    int in = v->h * v->w, out = v->out_h * v->out_w;
    for (int i = 0; i < n * v->c; i++, dx += in, dy += out, winner += out) {
        memset(dx, 0, (size_t)in * sizeof *dx);
        for (int p = 0; p < out; p++)
            dx[winner[p]] += dy[p];
    }
}

static void avgpool(float *y, const float *x, int n, const struct window *v) {
    for (int i = 0; i < n * v->c; i++, x += v->h * v->w)
        for (int oy = 0; oy < v->out_h; oy++)
            for (int ox = 0; ox < v->out_w; ox++) {
                struct span s = window_span(v, oy, ox);
                float sum = 0;
                for (int py = s.y0; py < s.y1; py++)
                    for (int px = s.x0; px < s.x1; px++)
                        sum += x[py * v->w + px];
                *y++ = sum * span_mean_factor(s);
            }
}

static void avgpool_back(float *dx, const float *dy, int n, const struct window *v) {
    memset(dx, 0, (size_t)n * (size_t)(v->c * v->h * v->w) * sizeof *dx);
    for (int i = 0; i < n * v->c; i++, dx += v->h * v->w)
        for (int oy = 0; oy < v->out_h; oy++)
            for (int ox = 0; ox < v->out_w; ox++) {
                struct span s = window_span(v, oy, ox);
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
                struct span s = window_span(v, oy, ox);
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
                struct span s = window_span(v, oy, ox);
                float factor = *y > 0 ? *dy / *y : 0;
                for (int py = s.y0; py < s.y1; py++)
                    for (int px = s.x0; px < s.x1; px++)
                        dx[py * v->w + px] += factor * x[py * v->w + px];
            }
}

#endif
