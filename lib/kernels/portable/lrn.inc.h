// Local response normalisation across maps, one map's plane of pixels at a time.
#ifndef ADAM_KERNELS_PORTABLE_LRN_INC_H
#define ADAM_KERNELS_PORTABLE_LRN_INC_H

#include <math.h>
#include <stddef.h>

enum { LRN_PIXELS = 64 };

// x^-beta; 3/4, which every published net uses, by two roots that vectorise.
static inline float power_negative(float x, float beta) {
    if (beta == 0.75f)
        return 1.0f / (sqrtf(x) * sqrtf(sqrtf(x)));
    return powf(x, -beta);
}

// Maps [first, last) that stand in the window around map m.
static inline void lrn_window(int m, int size, int c, int *first, int *last) {
    *first = m - size / 2 > 0 ? m - size / 2 : 0;
    *last = m - size / 2 + size < c ? m - size / 2 + size : c;
}

static void lrn(float *y, float *scale, const float *x, int n, int c, int pixels, int size,
                float alpha, float beta, float k) {
    size_t sample = (size_t)c * (size_t)pixels;
    for (int i = 0; i < n; i++, x += sample, y += sample, scale += sample)
        for (int m = 0; m < c; m++) {
            int first, last;
            size_t at = (size_t)m * (size_t)pixels;
            lrn_window(m, size, c, &first, &last);
            for (int p = 0; p < pixels; p++)
                scale[at + (size_t)p] = 0;
            for (int j = first; j < last; j++)
                for (int p = 0; p < pixels; p++) {
                    float v = x[(size_t)j * (size_t)pixels + (size_t)p];
                    scale[at + (size_t)p] += v * v;
                }
            for (size_t q = at; q < at + (size_t)pixels; q++) {
                scale[q] = k + alpha / (float)size * scale[q];
                y[q] = x[q] * power_negative(scale[q], beta);
            }
        }
}

// dx_m = dy_m scale_m^-beta - 2 alpha beta / size x_m sum_j dy_j y_j / scale_j,
// over the maps j in whose windows m stands: the mirrored window, and 0 where a relu gave x = 0.
// Some pixels at a time, since dx may be x.
static void lrn_back_pixels(float *dx, const float *dy, const float *y, const float *scale,
                            const float *x, bool relu, int first, int last, size_t at,
                            size_t pixels, int count, float factor, float beta) {
    float sums[LRN_PIXELS] = {0};
    for (int j = first; j < last; j++)
        for (int p = 0; p < count; p++) {
            size_t q = (size_t)j * pixels + (size_t)p;
            sums[p] += dy[q] * y[q] / scale[q];
        }
#pragma GCC ivdep // if dx is x, each number is read before it is written
    for (int p = 0; p < count; p++) {
        size_t q = at + (size_t)p;
        float error = dy[q] * power_negative(scale[q], beta) - factor * x[q] * sums[p];
        dx[q] = !relu || x[q] > 0 ? error : 0;
    }
}

static void lrn_back(float *dx, const float *dy, const float *y, const float *scale, const float *x,
                     bool relu, int n, int c, int pixels, int size, float alpha, float beta) {
    size_t sample = (size_t)c * (size_t)pixels;
    float factor = 2.0f * alpha * beta / (float)size;
    for (int i = 0; i < n;
         i++, x += sample, y += sample, scale += sample, dx += sample, dy += sample)
        for (int m = 0; m < c; m++) {
            int first = m + size / 2 - size + 1, last = m + size / 2 + 1;
            first = first > 0 ? first : 0;
            last = last < c ? last : c;
            for (int p = 0; p < pixels; p += LRN_PIXELS)
                lrn_back_pixels(dx + p, dy + p, y + p, scale + p, x + p, relu, first, last,
                                (size_t)m * (size_t)pixels, (size_t)pixels,
                                pixels - p < LRN_PIXELS ? pixels - p : LRN_PIXELS, factor, beta);
        }
}

#endif
