// Group normalisation of plain samples.
#ifndef ADAM_KERNELS_PORTABLE_GROUP_NORM_INC_H
#define ADAM_KERNELS_PORTABLE_GROUP_NORM_INC_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "core/hogwild.h"
#include "kernels/group_norm.h"
#include "kernels/portable/bias.inc.h"

enum { NORM_PIECE = 4096 }; // floats that are added up in single precision, in 16 lanes

// The sum of (a - from) * (x - mean).
static float row_products(const float *a, float from, const float *x, float mean, int n) {
    float lanes[16] = {0}, sum = 0;
    int i = 0;
    for (; i + 16 <= n; i += 16)
        for (int l = 0; l < 16; l++)
            lanes[l] += (a[i + l] - from) * (x[i + l] - mean);
    for (; i < n; i++)
        sum += (a[i] - from) * (x[i] - mean);
    for (int l = 0; l < 16; l++)
        sum += lanes[l];
    return sum;
}

static int norm_piece(int at, int n) {
    return n - at < NORM_PIECE ? n - at : NORM_PIECE;
}

static double norm_sum(const float *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i += NORM_PIECE)
        sum += (double)row_sum(x + i, norm_piece(i, n));
    return sum;
}

static double norm_products(const float *a, float from, const float *x, float mean, int n) {
    double sum = 0;
    for (int i = 0; i < n; i += NORM_PIECE)
        sum += (double)row_products(a + i, from, x + i, mean, norm_piece(i, n));
    return sum;
}

// The mean of a group, and one divided by its deviation.
struct norm_stats {
    float mean, inverse;
};

static struct norm_stats norm_measure(const float *x, int n, float epsilon) {
    float mean = (float)(norm_sum(x, n) / n);
    double squares = norm_products(x, mean, x, mean, n);
    return (struct norm_stats){mean, (float)(1 / sqrt(squares / n + (double)epsilon))};
}

// One group of one sample: the maps that begin with `first`.
HOGWILD static void norm_group(float *y, const float *x, const float *scale, const float *shift,
                               struct norm_stats stats, int first, const struct group_norm *norm) {
    int maps = norm->c / norm->groups, pixels = norm->pixels;
    for (int m = first; m < first + maps; m++, y += pixels, x += pixels) {
        const float *scales = scale + (norm->each ? (size_t)m * (size_t)pixels : (size_t)m);
        const float *shifts = shift + (scales - scale);
        if (norm->each) {
            for (int p = 0; p < pixels; p++)
                y[p] = (x[p] - stats.mean) * stats.inverse * scales[p] + shifts[p];
            continue;
        }
        float a = stats.inverse * *scales, b = *shifts;
        for (int p = 0; p < pixels; p++)
            y[p] = (x[p] - stats.mean) * a + b;
    }
}

static void group_norm(float *y, float *kept, const float *x, const float *scale,
                       const float *shift, int n, const struct group_norm *norm) {
    int maps = norm->c / norm->groups, size = maps * norm->pixels;
    for (int i = 0; i < n; i++)
        for (int g = 0; g < norm->groups; g++, x += size, y += size, kept += 2) {
            struct norm_stats stats = norm_measure(x, size, norm->epsilon);
            norm_group(y, x, scale, shift, stats, g * maps, norm);
            kept[0] = stats.mean;
            kept[1] = stats.inverse;
        }
}

// Sums over a group: of scale * dy, and of scale * dy * x^.
struct norm_errors {
    double plain, along;
};

// Adds the gradients of the scales and shifts of one map.
HOGWILD static struct norm_errors norm_map_errors(float *dscale, float *dshift, const float *dy,
                                                  const float *x, const float *scale,
                                                  struct norm_stats stats,
                                                  const struct group_norm *norm) {
    struct norm_errors errors = {0, 0};
    if (!norm->each) {
        double plain = norm_sum(dy, norm->pixels);
        double along = norm_products(dy, 0, x, stats.mean, norm->pixels) * (double)stats.inverse;
        *dscale += (float)along;
        *dshift += (float)plain;
        return (struct norm_errors){(double)*scale * plain, (double)*scale * along};
    }
    for (int p = 0; p < norm->pixels; p++) {
        float along = (x[p] - stats.mean) * stats.inverse, error = dy[p] * scale[p];
        dscale[p] += dy[p] * along;
        dshift[p] += dy[p];
        errors.plain += (double)error;
        errors.along += (double)(error * along);
    }
    return errors;
}

// dx = (scale dy - mean of scale dy - x^ mean of scale dy x^) / deviation.
HOGWILD static void norm_map_back(float *dx, const float *dy, const float *x, const float *scale,
                                  struct norm_stats stats, float plain, float along,
                                  const struct group_norm *norm) {
    float same = norm->each ? 0 : *scale;
    for (int p = 0; p < norm->pixels; p++) {
        float error = dy[p] * (norm->each ? scale[p] : same);
        dx[p] = stats.inverse * (error - plain - (x[p] - stats.mean) * stats.inverse * along);
    }
}

static void group_norm_back(float *dx, float *dscale, float *dshift, const float *dy,
                            const float *kept, const float *x, const float *scale, int n,
                            const struct group_norm *norm) {
    int maps = norm->c / norm->groups, pixels = norm->pixels, size = maps * pixels;
    size_t each = norm->each ? (size_t)pixels : 1, count = (size_t)norm->c * each;
    memset(dscale, 0, count * sizeof *dscale);
    memset(dshift, 0, count * sizeof *dshift);
    for (int i = 0; i < n; i++)
        for (int g = 0; g < norm->groups; g++, kept += 2, x += size, dy += size) {
            struct norm_stats stats = {kept[0], kept[1]};
            struct norm_errors sum = {0, 0};
            for (int m = 0; m < maps; m++) {
                size_t at = (size_t)(g * maps + m) * each, from = (size_t)m * (size_t)pixels;
                struct norm_errors errors = norm_map_errors(dscale + at, dshift + at, dy + from,
                                                            x + from, scale + at, stats, norm);
                sum.plain += errors.plain;
                sum.along += errors.along;
            }
            for (int m = 0; m < maps && dx; m++) {
                size_t at = (size_t)(g * maps + m) * each, from = (size_t)m * (size_t)pixels;
                norm_map_back(dx + from, dy + from, x + from, scale + at, stats,
                              (float)(sum.plain / size), (float)(sum.along / size), norm);
            }
            dx = dx ? dx + size : NULL;
        }
}

#endif
