// The loops of gauss_filter, compiled once for each family of processors.
#ifndef ADAM_IMAGE_PORTABLE_GAUSS_INC_H
#define ADAM_IMAGE_PORTABLE_GAUSS_INC_H

#include "core/portable/exact.inc.h"

#include <string.h>

#include "image/gauss.h"

// to[x] += weight (a[x] + b[x])
static inline void add_pair(float *restrict to, const float *a, const float *b, float weight,
                            int n) {
    for (int x = 0; x < n; x++)
        to[x] += weight * (a[x] + b[x]);
}

static inline void scale(float *restrict to, const float *from, float weight, int n) {
    for (int x = 0; x < n; x++)
        to[x] = weight * from[x];
}

static inline void add(float *restrict to, const float *from, float weight, int n) {
    for (int x = 0; x < n; x++)
        to[x] += weight * from[x];
}

static inline void filter_columns(float *to, const float *from, int width, int height,
                                  const float *weight, int radius) {
    for (int y = 0; y < height; y++) {
        float *row = to + (long)y * width;
        const float *middle = from + (long)y * width;
        scale(row, middle, weight[0], width);
        for (int k = 1; k <= radius; k++) {
            const float *above = middle - (long)k * width, *below = middle + (long)k * width;
            if (k <= y && k < height - y)
                add_pair(row, above, below, weight[k], width);
            else if (k <= y)
                add(row, above, weight[k], width);
            else if (k < height - y)
                add(row, below, weight[k], width);
        }
    }
}

static inline void filter_rows(float *to, const float *from, float *padded, int width, int height,
                               int channels, const float *weight, int radius) {
    memset(padded, 0, (size_t)(width + 2 * radius * channels) * sizeof *padded);
    float *middle = padded + (long)radius * channels;
    for (int y = 0; y < height; y++) {
        float *row = to + (long)y * width;
        memcpy(middle, from + (long)y * width, (size_t)width * sizeof *middle);
        scale(row, middle, weight[0], width);
        for (int k = 1; k <= radius; k++)
            add_pair(row, middle - (long)k * channels, middle + (long)k * channels, weight[k],
                     width);
    }
}

static inline void filter(float *field, float *room, int width, int height, int channels,
                          const float *weight, int radius) {
    width *= channels; // values in a row
    filter_columns(room, field, width, height, weight, radius);
    filter_rows(field, room, room + (long)width * height, width, height, channels, weight, radius);
}

#endif
