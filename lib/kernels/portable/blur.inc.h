// Blurring with Gaussian weights over the neighbours that exist, for lcn.
#ifndef ADAM_KERNELS_PORTABLE_BLUR_INC_H
#define ADAM_KERNELS_PORTABLE_BLUR_INC_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "kernels/taps.h"

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

#endif
