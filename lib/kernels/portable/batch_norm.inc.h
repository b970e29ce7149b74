// Batch normalisation of plain samples: of each map the rows of all samples.
#ifndef ADAM_KERNELS_PORTABLE_BATCH_NORM_INC_H
#define ADAM_KERNELS_PORTABLE_BATCH_NORM_INC_H

#include <math.h>

#include "core/hogwild.h"
#include "kernels/batch_norm.h"
#include "kernels/portable/group_norm.inc.h"

static size_t batch_row(const struct batch_norm *norm, int sample, int map) {
    return ((size_t)sample * (size_t)norm->c + (size_t)map) * (size_t)norm->pixels;
}

static void batch_measure(float *mean, float *variance, const float *x,
                          const struct batch_norm *norm, float *scratch) {
    double count = (double)norm->n * norm->pixels;
    (void)scratch;
    for (int m = 0; m < norm->c; m++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < norm->n; i++)
            sum += norm_sum(x + batch_row(norm, i, m), norm->pixels);
        mean[m] = (float)(sum / count);
        for (int i = 0; i < norm->n; i++) {
            const float *row = x + batch_row(norm, i, m);
            squares += norm_products(row, mean[m], row, mean[m], norm->pixels);
        }
        variance[m] = (float)(squares / count);
    }
}

static void batch_scale(float *y, const float *x, const float *more, const float *factor,
                        const float *term, float most, const struct batch_norm *norm,
                        float *scratch) {
    float least = most > 0 ? 0 : -INFINITY;
    most = most > 0 ? most : INFINITY;
    (void)scratch;
    for (int i = 0; i < norm->n; i++)
        for (int m = 0; m < norm->c; m++) {
            size_t at = batch_row(norm, i, m);
            float a = factor[m], b = term[m];
            for (int p = 0; p < norm->pixels; p++) {
                float value = x[at + (size_t)p] * a + b + (more ? more[at + (size_t)p] : 0);
                value = value > least ? value : least;
                y[at + (size_t)p] = value < most ? value : most;
            }
        }
}

// One error gradient, behind the relu where there is one.
static inline float behind_relu(float dy, const float *outputs, float most, size_t at) {
    return !outputs || (outputs[at] > 0 && outputs[at] < most) ? dy : 0;
}

static void batch_errors(float *plain, float *along, float *dy, const float *outputs, float most,
                         const float *x, const float *mean, const struct batch_norm *norm,
                         float *scratch) {
    (void)scratch;
    for (int m = 0; m < norm->c; m++) {
        double sum = 0, products = 0;
        for (int i = 0; i < norm->n; i++) {
            size_t at = batch_row(norm, i, m);
            for (size_t p = at; p < at + (size_t)norm->pixels; p++) {
                dy[p] = behind_relu(dy[p], outputs, most, p);
                sum += (double)dy[p];
                products += (double)dy[p] * (double)(x[p] - mean[m]);
            }
        }
        plain[m] = (float)sum;
        along[m] = (float)products;
    }
}

static void batch_back(float *dx, const float *dy, const float *x, const float *factor,
                       const float *slope, const float *term, const struct batch_norm *norm,
                       float *scratch) {
    (void)scratch;
    for (int i = 0; i < norm->n; i++)
        for (int m = 0; m < norm->c; m++) {
            size_t at = batch_row(norm, i, m);
            float a = factor[m], b = slope[m], c = term[m];
            for (size_t p = at; p < at + (size_t)norm->pixels; p++)
                dx[p] = dy[p] * a + x[p] * b + c;
        }
}

// In double precision, of map m: one divided by the deviation.
__attribute__((always_inline)) static inline double batch_inverse(const struct batch_maps *maps,
                                                                  int m) {
    double variance = (double)maps->variance[m];
    return 1 / sqrt((variance > 0 ? variance : 0) + maps->epsilon);
}

HOGWILD static void batch_map_factors(float *restrict factor, float *restrict term,
                                      const struct batch_maps *maps) {
    for (int m = 0; m < maps->c; m++) {
        double each = batch_inverse(maps, m) * (double)maps->scale[m];
        factor[m] = (float)each;
        term[m] = (float)((double)maps->shift[m] - (double)maps->mean[m] * each);
    }
}

HOGWILD static void batch_map_error_factors(float *restrict factor, float *restrict slope,
                                            float *restrict term, float *restrict dscale,
                                            float *restrict dshift, const float *plain,
                                            const float *along, double share,
                                            const struct batch_maps *maps) {
    for (int m = 0; m < maps->c; m++) {
        double inverse = batch_inverse(maps, m), each = inverse * (double)maps->scale[m];
        double along_mean = (double)along[m] * share * inverse * inverse;
        double plain_mean = (double)plain[m] * share;
        dscale[m] += (float)((double)along[m] * inverse);
        dshift[m] += plain[m];
        factor[m] = (float)each;
        slope[m] = (float)(-each * along_mean);
        term[m] = (float)(each * (along_mean * (double)maps->mean[m] - plain_mean));
    }
}

HOGWILD static void batch_map_distances(float *restrict mean, float *restrict variance,
                                        const float *lasting_mean, const float *lasting_variance,
                                        float share, double unbiased,
                                        const struct batch_maps *maps) {
    for (int m = 0; m < maps->c; m++) {
        float now = (float)((double)maps->variance[m] * unbiased);
        mean[m] += share * (lasting_mean[m] - maps->mean[m]);
        variance[m] += share * (lasting_variance[m] - now);
    }
}

static const struct batch_map_kernels batch_maps = {
    .factors = batch_map_factors,
    .error_factors = batch_map_error_factors,
    .distances = batch_map_distances,
};

static const struct batch_norm_kernels batch_norm_plain = {
    .measure = batch_measure,
    .scale = batch_scale,
    .errors = batch_errors,
    .back = batch_back,
};

#endif
