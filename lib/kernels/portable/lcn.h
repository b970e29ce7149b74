// Local contrast normalisation: subtractive, then divisive.
#ifndef ADAM_KERNELS_PORTABLE_LCN_H
#define ADAM_KERNELS_PORTABLE_LCN_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernels/portable/window.h"

enum { LCN_SIZE_MOST = 63 };

// Gaussian taps; the deviation is a quarter of the window.
static void gaussian(float *taps, int size) {
    float deviation = (float)size / 4;
    for (int i = 0; i < size; i++) {
        float d = ((float)i - (float)(size / 2)) / deviation;
        taps[i] = expf(-0.5f * d * d);
    }
}

// The sum of the taps that fall on the picture around position `at`.
static float taps_inside(const float *taps, int size, int at, int length) {
    float sum = 0;
    for (int t = 0; t < size; t++)
        if (at + t - size / 2 >= 0 && at + t - size / 2 < length)
            sum += taps[t];
    return sum;
}

// Each line of `plane` (outer x length x inner floats; a line runs along `length`)
// times the share of every place: one over the taps that fall on the picture.
static void share_out(float *plane, int outer, int length, int inner, const float *taps, int size) {
    for (int x = 0; x < length; x++) {
        float share = 1.0f / taps_inside(taps, size, x, length);
        for (int o = 0; o < outer; o++) {
            float *at = plane + ((size_t)o * (size_t)length + (size_t)x) * (size_t)inner;
            for (int i = 0; i < inner; i++)
                at[i] *= share;
        }
    }
}

// Blurs along the lines, from `from` to `to`; `from` is lost.
static void blur_lines(float *to, float *from, int outer, int length, int inner, int size,
                       bool adjoint) {
    float taps[LCN_SIZE_MOST];
    size_t line = (size_t)length * (size_t)inner;
    gaussian(taps, size);
    if (adjoint)
        share_out(from, outer, length, inner, taps, size);
    memset(to, 0, (size_t)outer * line * sizeof *to);
    for (int o = 0; o < outer; o++)
        for (int t = 0; t < size; t++) {
            int shift = adjoint ? size / 2 - t : t - size / 2, first, last;
            tap_range(shift, 1, length, length, &first, &last);
            float *sum = to + (size_t)o * line;
            const float *tapped = from + (size_t)o * line + (ptrdiff_t)shift * inner;
            for (ptrdiff_t i = (ptrdiff_t)first * inner; i < (ptrdiff_t)last * inner; i++)
                sum[i] += taps[t] * tapped[i];
        }
    if (!adjoint)
        share_out(to, outer, length, inner, taps, size);
}

// plane(y, x) becomes the weighted mean of its neighbours that exist; `adjoint`
// gives back to each neighbour what it gave. Separable, since the weights and
// their sums over what exists are. `scratch` is as large as the plane: h x w x
// lanes, samples side by side.
static void blur(float *plane, float *scratch, int h, int w, int lanes, int size, bool adjoint) {
    blur_lines(scratch, plane, h, w, lanes, size, adjoint);
    blur_lines(plane, scratch, 1, h, w * lanes, size, adjoint);
}

static void lcn(float *y, float *v, float *s, const float *x, int n, int c, int h, int w, int size,
                float least) {
    int pixels = h * w;
    float share = 1.0f / (float)c;
    // The outputs' first map serves as scratch until they are written; it is one
    // plane, and blur wants one more: the second is s, written last.
    for (int i = 0; i < n; i++, x += c * pixels, y += c * pixels, v += c * pixels, s += pixels) {
        float *mean = s, *scratch = y;
        memset(mean, 0, (size_t)pixels * sizeof *mean);
        for (int m = 0; m < c; m++)
            for (int p = 0; p < pixels; p++)
                mean[p] += share * x[m * pixels + p];
        blur(mean, scratch, h, w, 1, size, false);
        for (int m = 0; m < c; m++)
            for (int p = 0; p < pixels; p++)
                v[m * pixels + p] = x[m * pixels + p] - mean[p];
        memset(s, 0, (size_t)pixels * sizeof *s);
        for (int m = 0; m < c; m++)
            for (int p = 0; p < pixels; p++)
                s[p] += share * v[m * pixels + p] * v[m * pixels + p];
        blur(s, scratch, h, w, 1, size, false);
        for (int p = 0; p < pixels; p++)
            s[p] = sqrtf(s[p]);
        for (int m = 0; m < c; m++)
            for (int p = 0; p < pixels; p++)
                y[m * pixels + p] = v[m * pixels + p] / (s[p] > least ? s[p] : least);
    }
}

// With d = max(s, least):  dv = dy / d - [s > least] (v / c) G'(sum dy v / s^3),
// where G' is the adjoint of the weighting; then dx = dv - G'(sum dv) / c.
static void lcn_back(float *dx, const float *dy, const float *v, const float *s, float *plane,
                     int n, int c, int h, int w, int size, float least) {
    int pixels = h * w;
    float share = 1.0f / (float)c, *scratch = plane + pixels;
    for (int i = 0; i < n; i++, dx += c * pixels, dy += c * pixels, v += c * pixels, s += pixels) {
        memset(plane, 0, (size_t)pixels * sizeof *plane);
        for (int m = 0; m < c; m++)
            for (int p = 0; p < pixels; p++)
                plane[p] += dy[m * pixels + p] * v[m * pixels + p];
        for (int p = 0; p < pixels; p++)
            plane[p] = s[p] > least ? plane[p] / (s[p] * s[p] * s[p]) : 0;
        blur(plane, scratch, h, w, 1, size, true);
        for (int m = 0; m < c; m++)
            for (int p = 0; p < pixels; p++) {
                float d = s[p] > least ? s[p] : least;
                dx[m * pixels + p] = dy[m * pixels + p] / d - share * v[m * pixels + p] * plane[p];
            }
        memset(plane, 0, (size_t)pixels * sizeof *plane);
        for (int m = 0; m < c; m++)
            for (int p = 0; p < pixels; p++)
                plane[p] += share * dx[m * pixels + p];
        blur(plane, scratch, h, w, 1, size, true);
        for (int m = 0; m < c; m++)
            for (int p = 0; p < pixels; p++)
                dx[m * pixels + p] -= plane[p];
    }
}

#endif
