// The loop of a hue_row, compiled once for each family of processors and
// vectorised by the compiler, for which it calls nothing and never branches.
//
// A channel of an HSV colour (Smith 1978), with the hue in sextants, is
//   high - chroma max(0, min(k, 4 - k, 1)),  k = (n + hue) mod 6,  n = 5, 3, 1 for R, G, B
// Hue and k are in units of the chroma here, for which nothing is divided.
#ifndef ADAM_IMAGE_PORTABLE_HUE_INC_H
#define ADAM_IMAGE_PORTABLE_HUE_INC_H

#include "core/portable/exact.inc.h"

#include "image/hue_rows.h"

static inline float hue_larger(float a, float b) {
    return a > b ? a : b;
}

static inline float hue_smaller(float a, float b) {
    return a < b ? a : b;
}

// A channel whose n + hue, in units of the chroma, is k before it is taken modulo 6.
static inline float hue_channel(float high, float chroma, float k) {
    k -= k >= 6 * chroma ? 6 * chroma : 0;
    return high - hue_larger(0, hue_smaller(hue_smaller(k, 4 * chroma - k), chroma));
}

static inline void turn_hues(float *restrict r, float *restrict g, float *restrict b, float turn,
                             int n) {
    for (int i = 0; i < n; i++) {
        float high = hue_larger(r[i], hue_larger(g[i], b[i]));
        float chroma = high - hue_smaller(r[i], hue_smaller(g[i], b[i]));
        float hue = r[i] - g[i] + 4 * chroma;
        hue = high == g[i] ? b[i] - r[i] + 2 * chroma : hue;
        hue = high == r[i] ? g[i] - b[i] : hue;
        hue += turn * chroma;
        hue += hue < 0 ? 6 * chroma : 0;
        hue -= hue >= 6 * chroma ? 6 * chroma : 0;
        r[i] = hue_channel(high, chroma, hue + 5 * chroma);
        g[i] = hue_channel(high, chroma, hue + 3 * chroma);
        b[i] = hue_channel(high, chroma, hue + chroma);
    }
}

#endif
