// Biases.
#ifndef ADAM_KERNELS_PORTABLE_BIAS_INC_H
#define ADAM_KERNELS_PORTABLE_BIAS_INC_H

#include <stddef.h>

#include "core/hogwild.h"

HOGWILD static void bias_add(float *y, const float *bias, int n, int m, int pixels) {
    for (int i = 0; i < n; i++) {
        if (pixels == 1) {
            for (int j = 0; j < m; j++)
                y[j] += bias[j];
            y += m;
            continue;
        }
        for (int j = 0; j < m; j++, y += pixels) {
            float b = bias[j];
            for (int p = 0; p < pixels; p++)
                y[p] += b;
        }
    }
}

// Sums in 16 lanes, so that it vectorises without reordering being allowed.
static float row_sum(const float *x, int n) {
    float lanes[16] = {0}, sum = 0;
    int i = 0;
    for (; i + 16 <= n; i += 16)
        for (int l = 0; l < 16; l++)
            lanes[l] += x[i + l];
    for (; i < n; i++)
        sum += x[i];
    for (int l = 0; l < 16; l++)
        sum += lanes[l];
    return sum;
}

static void bias_sum(float *gradient, const float *dy, int n, int m, int pixels) {
    for (int j = 0; j < m; j++)
        gradient[j] = 0;
    for (int i = 0; i < n; i++) {
        if (pixels == 1) {
            for (int j = 0; j < m; j++)
                gradient[j] += dy[j];
            dy += m;
            continue;
        }
        for (int j = 0; j < m; j++, dy += pixels)
            gradient[j] += row_sum(dy, pixels);
    }
}

#endif
