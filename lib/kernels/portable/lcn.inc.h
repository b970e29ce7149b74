// Local contrast normalisation: subtractive, then divisive.
#ifndef ADAM_KERNELS_PORTABLE_LCN_INC_H
#define ADAM_KERNELS_PORTABLE_LCN_INC_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernels/portable/blur.inc.h"

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
