// Batch normalisation (Ioffe and Szegedy 2015, algorithm 1): of several samples together, the
// values of each map less their mean, divided by their deviation,
//   x^ = (x - mean) / sqrt(variance + epsilon),   y = scale * x^ + shift.
// Kernels measure each map, and then apply factors that the caller has made of what was measured.
#ifndef ADAM_KERNELS_BATCH_NORM_H
#define ADAM_KERNELS_BATCH_NORM_H

#include <stdbool.h>
#include <stddef.h>

// Samples that are normalised together.
struct batch_norm {
    int n, c, pixels;
    int lanes; // of the blocks in which they lie (kernels/blocks.h); 0: plain samples
};

// What maps are normalised by: c floats each, of which scale and shift, and the statistics that
// last, may change meanwhile (core/hogwild.h). A variance below 0 is 0.
struct batch_maps {
    const float *mean, *variance, *scale, *shift;
    double epsilon;
    int c;
};

// Of maps, c floats each, whatever the layout of the samples.
struct batch_map_kernels {
    // factor = scale / deviation, term = shift - mean * factor.
    void (*factors)(float *factor, float *term, const struct batch_maps *maps);
    // From the sums of error gradients and of these along x - mean: adds the gradients of scale and
    // shift; and what makes dx of dy and x,
    //   dx = scale / deviation (dy - mean of dy - x^ mean of dy x^) = factor dy + slope x + term,
    // where means are sums times `share`; 0: the statistics are given, and not those of x.
    void (*error_factors)(float *factor, float *slope, float *term, float *dscale, float *dshift,
                          const float *plain, const float *along, double share,
                          const struct batch_maps *maps);
    // Adds how far the statistics that last are from those of maps, the variance times `unbiased`;
    // times `share`.
    void (*distances)(float *mean, float *variance, const float *lasting_mean,
                      const float *lasting_variance, float share, double unbiased,
                      const struct batch_maps *maps);
};

// The sums of error gradients that who wrote them has taken: with x, or, where they came through
// the relu of y = factor x + term, with y.
struct batch_sums {
    const struct conv_sums *sums; // kernels/conv.h
    const float *factor, *term;   // NULL: with x
    const float *mean, *variance;
};

// For plain samples, or for blocks, of whose last one some lanes may have no sample. What is of
// maps has c floats. A relu may follow: `most` is its upper bound, INFINITY for a relu without one
// and 0 where there is none. scratch: batch_norm_scratch() floats, aligned as MEM_ALIGN.
struct batch_norm_kernels {
    // The variance is the mean of the squares.
    void (*measure)(float *mean, float *variance, const float *x, const struct batch_norm *norm,
                    float *scratch);
    // The same from sums of x. Of blocks that are full, alone; as is errors_summed.
    void (*measure_summed)(float *mean, float *variance, const struct conv_sums *sums,
                           const struct batch_norm *norm);
    // y = factor x + term, with `more`, which is laid out as they are, where it is not NULL; and
    // the relu of that. y may be x.
    void (*scale)(float *y, const float *x, const float *more, const float *factor,
                  const float *term, float most, const struct batch_norm *norm, float *scratch);
    // Takes dy back through the relu whose outputs are given, which may be NULL, in place; and the
    // sums of dy and of dy (x - mean).
    void (*errors)(float *plain, float *along, float *dy, const float *outputs, float most,
                   const float *x, const float *mean, const struct batch_norm *norm,
                   float *scratch);
    // These sums from those with x or y. False: they tell too little of x - mean, since x or y of
    // some map lie far from 0 beside their deviation; nothing is written.
    bool (*errors_summed)(float *plain, float *along, const struct batch_sums *sums,
                          const struct batch_norm *norm);
    // dx = factor dy + slope x + term, and 0 in lanes without a sample. dx may be x.
    void (*back)(float *dx, const float *dy, const float *x, const float *factor,
                 const float *slope, const float *term, const struct batch_norm *norm,
                 float *scratch);
};

static inline size_t batch_norm_scratch(int c, int lanes) {
    return (size_t)c * (size_t)(4 + 5 * lanes);
}

#endif
