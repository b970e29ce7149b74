// Batch normalisation of blocks. The run of a pixel, its maps times the samples, has one factor for
// each of its floats. What is larger than the caches comes fastest in the order in which it lies,
// so pixels go one by one, and factors come from the L1 cache anew for each; but sums stay in
// registers over some pixels, a few vectors of the run at a time, where they would wait for one
// another.
#ifndef ADAM_KERNELS_BLOCK_BATCH_NORM_INC_H
#define ADAM_KERNELS_BLOCK_BATCH_NORM_INC_H

#include <math.h>
#include <string.h>

#include "kernels/batch_norm.h"
#include "kernels/block/run.inc.h"
#include "kernels/conv.h"

enum {
    BATCH_VECTORS = 4,      // at a time
    BATCH_PIXELS = 16,      // whose sums stay in registers, near each other
    BATCH_LONG = 12,        // vectors of a run, whose sums do not wait for one another
    BATCH_SUMMED = 64 * 16, // pixels whose sums are in single precision
    BATCH_FAR = 16,         // deviations from 0, where a mean is too far
    BATCH_LARGE = 1 << 16,  // floats: more may come from beyond the L2 cache
};

enum batch_pass { BATCH_MEASURE, BATCH_SCALE, BATCH_SUM, BATCH_ERRORS, BATCH_BACK };

// What a pass reads and writes: of each value, and of each float of a run.
struct batch_arrays {
    const float *x, *more, *dy, *outputs;
    float most;
    float *out; // of errors: dy, when it has come through the relu
    const float
        *k[3];      // measure: from; scale: factor, term; errors: mean; back: factor, slope, term
    float *sums[2]; // of measure and errors
};

__attribute__((always_inline)) static inline vector batch_error(bool relu, struct batch_arrays a,
                                                                size_t at, int count) {
    vector dy = load_part(a.dy + at, count);
    if (!relu)
        return dy;
    return through_relu(dy, load_part(a.outputs + at, count), a.most);
}

__attribute__((always_inline)) static inline vector clip(vector y, float most) {
    vector bound = most - (vector){0};
    y = (vector)((y > 0) & (vector_int)y);
    return choose(y < bound, y, bound);
}

// One vector of one pixel, at `at`. relu: outputs are of one, or error gradients come through it.
// far: what is read may come from beyond the L2 cache.
__attribute__((always_inline)) static inline void batch_vector(enum batch_pass pass, bool relu,
                                                               bool far, struct batch_arrays a,
                                                               const vector k[3], vector sums[2],
                                                               size_t at, int count) {
    vector x = load_part(a.x + at, count);
    if (far)
        __builtin_prefetch(a.x + at + RUN_AHEAD);
    if (far && (pass == BATCH_BACK || pass == BATCH_ERRORS))
        __builtin_prefetch(a.dy + at + RUN_AHEAD);
    if (pass == BATCH_MEASURE) {
        vector from = x - k[0];
        sums[0] += from;
        sums[1] += from * from;
    } else if (pass == BATCH_SCALE || pass == BATCH_SUM) {
        vector y = x * k[0] + k[1];
        if (pass == BATCH_SUM)
            y += load_part(a.more + at, count);
        if (relu)
            y = clip(y, a.most);
        store_part(a.out + at, y, count);
    } else if (pass == BATCH_ERRORS) {
        vector error = batch_error(relu, a, at, count);
        if (relu)
            store_part(a.out + at, error, count);
        sums[0] += error;
        sums[1] += error * (x - k[0]);
    } else {
        store_part(a.out + at, load_part(a.dy + at, count) * k[0] + x * k[1] + k[2], count);
    }
}

// `vectors` of the run from float i on, for some pixels that begin at x[at].
__attribute__((always_inline)) static inline void
batch_tile(enum batch_pass pass, bool relu, bool far, int vectors, struct batch_arrays a, size_t at,
           int pixels, int run, int i, int count) {
    bool adds = pass == BATCH_MEASURE || pass == BATCH_ERRORS;
    int factors = pass == BATCH_BACK ? 3 : pass == BATCH_SCALE || pass == BATCH_SUM ? 2 : 1;
    vector k[BATCH_VECTORS][3], sums[BATCH_VECTORS][2];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
#pragma GCC unroll 3
        for (int f = 0; f < factors; f++)
            k[v][f] = load_part(a.k[f] + i + v * LANES, count);
#pragma GCC unroll 2
        for (int s = 0; adds && s < 2; s++)
            sums[v][s] = load_part(a.sums[s] + i + v * LANES, count);
    }
    for (int p = 0; p < pixels; p++, at += (size_t)run) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            batch_vector(pass, relu, far, a, k[v], sums[v], at + (size_t)(i + v * LANES), count);
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
#pragma GCC unroll 2
        for (int s = 0; adds && s < 2; s++)
            store_part(a.sums[s] + i + v * LANES, sums[v][s], count);
}

// What is measured lies in a cache still: whoever made it has just written it.
static inline int batch_pixels_at_once(enum batch_pass pass, int run) {
    bool waits = pass == BATCH_ERRORS && run < BATCH_LONG * LANES;
    return pass == BATCH_MEASURE || waits ? BATCH_PIXELS : 1;
}

__attribute__((always_inline)) static inline void batch_pixels_of(enum batch_pass pass, bool relu,
                                                                  bool far, struct batch_arrays a,
                                                                  int first, int last, int run) {
    int most = batch_pixels_at_once(pass, run);
    for (int p = first; p < last; p += most) {
        int pixels = least_int(last - p, most), i = 0;
        size_t at = (size_t)p * (size_t)run;
        for (; i + BATCH_VECTORS * LANES <= run; i += BATCH_VECTORS * LANES)
            batch_tile(pass, relu, far, BATCH_VECTORS, a, at, pixels, run, i, LANES);
        for (; i + LANES <= run; i += LANES)
            batch_tile(pass, relu, far, 1, a, at, pixels, run, i, LANES);
        if (i < run)
            batch_tile(pass, relu, far, 1, a, at, pixels, run, i, run - i);
    }
}

// The pixels [first, last) of one block.
__attribute__((always_inline)) static inline void
batch_pixels(enum batch_pass pass, bool relu, struct batch_arrays a, int first, int last, int run) {
    if (pass != BATCH_MEASURE && (size_t)(last - first) * (size_t)run > BATCH_LARGE)
        batch_pixels_of(pass, relu, true, a, first, last, run);
    else
        batch_pixels_of(pass, relu, false, a, first, last, run);
}

// --- blocks -----------------------------------------------------------------------------

static int batch_run(const struct batch_norm *norm) {
    return norm->c * norm->lanes;
}

static int batch_blocks(const struct batch_norm *norm) {
    return (norm->n + norm->lanes - 1) / norm->lanes;
}

// Lanes of the block that have a sample.
static int batch_lanes(const struct batch_norm *norm, int block) {
    return least_int(norm->n - block * norm->lanes, norm->lanes);
}

// What each float of a run has of its map, at `to` where it is not there already; 0 in lanes from
// `lanes` on.
static const float *batch_spread(float *to, const float *of_maps, const struct batch_norm *norm,
                                 int lanes) {
    if (norm->lanes == 1)
        return of_maps;
    for (int m = 0; m < norm->c; m++)
        for (int l = 0; l < norm->lanes; l++)
            to[m * norm->lanes + l] = l < lanes ? of_maps[m] : 0;
    return to;
}

// A block's place, by what it has of each array.
static struct batch_arrays batch_at(struct batch_arrays a, const struct batch_norm *norm,
                                    int block) {
    size_t at = (size_t)block * (size_t)norm->pixels * (size_t)batch_run(norm);
    a.x += at;
    a.more = a.more ? a.more + at : NULL;
    a.dy = a.dy ? a.dy + at : NULL;
    a.outputs = a.outputs ? a.outputs + at : NULL;
    a.out = a.out ? a.out + at : NULL;
    return a;
}

// Adds the sums of a run to those of the maps, and begins anew.
static void batch_fold(double *of_maps, float *sums, const struct batch_norm *norm, int lanes) {
    for (int m = 0; m < norm->c; m++) {
        double sum = 0;
        for (int l = 0; l < lanes; l++)
            sum += (double)sums[m * norm->lanes + l];
        of_maps[m] += sum;
    }
    memset(sums, 0, (size_t)batch_run(norm) * sizeof *sums);
}

// Both sums of all samples for each map, into double[2 * c] at `scratch`.
__attribute__((always_inline)) static inline void batch_sum(enum batch_pass pass, bool relu,
                                                            struct batch_arrays a,
                                                            const struct batch_norm *norm,
                                                            float *scratch) {
    int run = batch_run(norm);
    double *of_maps = (double *)(void *)scratch;
    memset(scratch, 0, (size_t)(4 * norm->c + 2 * run) * sizeof *scratch);
    a.sums[0] = scratch + 4 * norm->c;
    a.sums[1] = a.sums[0] + run;
    for (int b = 0; b < batch_blocks(norm); b++)
        for (int p = 0; p < norm->pixels; p += BATCH_SUMMED) {
            batch_pixels(pass, relu, batch_at(a, norm, b), p,
                         least_int(p + BATCH_SUMMED, norm->pixels), run);
            batch_fold(of_maps, a.sums[0], norm, batch_lanes(norm, b));
            batch_fold(of_maps + norm->c, a.sums[1], norm, batch_lanes(norm, b));
        }
}

// Behind the sums.
static float *batch_factors(const struct batch_norm *norm, float *scratch, int i) {
    return scratch + 4 * norm->c + (2 + i) * batch_run(norm);
}

// --- the kernels ------------------------------------------------------------------------

static void batch_set_measured(float *mean, float *variance, double from, double away,
                               double squares) {
    squares -= away * away;
    *mean = (float)(from + away);
    *variance = (float)(squares > 0 ? squares : 0);
}

// By differences from the first value of each map, so that a mean that is large beside the
// deviation costs no digits.
static void batch_measure_block(float *mean, float *variance, const float *x,
                                const struct batch_norm *norm, float *scratch) {
    const double *of_maps = (const double *)(const void *)scratch;
    double count = (double)norm->n * norm->pixels;
    for (int m = 0; m < norm->c; m++)
        mean[m] = x[m * norm->lanes];
    const float *from = batch_spread(batch_factors(norm, scratch, 0), mean, norm, norm->lanes);
    batch_sum(BATCH_MEASURE, false, (struct batch_arrays){.x = x, .k = {from}}, norm, scratch);
    for (int m = 0; m < norm->c; m++) {
        double away = of_maps[m] / count, squares = of_maps[norm->c + m] / count;
        batch_set_measured(&mean[m], &variance[m], (double)mean[m], away, squares);
    }
}

// Of map m, of sums that have all lanes.
static double batch_lanes_sum(const float *sums, const struct batch_norm *norm, int m) {
    double sum = 0;
    for (int l = 0; l < norm->lanes; l++)
        sum += (double)sums[m * norm->lanes + l];
    return sum;
}

static void batch_measure_summed(float *mean, float *variance, const struct conv_sums *sums,
                                 const struct batch_norm *norm) {
    double share = 1 / ((double)norm->n * norm->pixels);
    for (int m = 0; m < norm->c; m++)
        batch_set_measured(&mean[m], &variance[m], (double)sums->from[m * norm->lanes],
                           batch_lanes_sum(sums->sum, norm, m) * share,
                           batch_lanes_sum(sums->product, norm, m) * share);
}

// x or y of map m are factor x + term.
struct batch_line {
    double factor, term;
};

__attribute__((always_inline)) static inline struct batch_line
batch_line(bool of_y, const struct batch_sums *s, int m) {
    return of_y ? (struct batch_line){(double)s->factor[m], (double)s->term[m]}
                : (struct batch_line){1, 0};
}

// Whether the difference to their mean keeps most of their digits, of each map.
__attribute__((always_inline)) static inline bool
batch_sums_tell(bool of_y, const struct batch_sums *s, int maps) {
    int tell = 1;
    for (int m = 0; m < maps; m++) {
        struct batch_line line = batch_line(of_y, s, m);
        double at_mean = line.factor * (double)s->mean[m] + line.term,
               far = BATCH_FAR * line.factor;
        tell &= at_mean * at_mean < far * far * (double)s->variance[m];
    }
    return tell;
}

// `single`: blocks have one lane, so that maps lie in vectors.
__attribute__((always_inline)) static inline void
batch_take_sums(bool of_y, bool single, float *restrict plain, float *restrict along,
                const struct batch_sums *s, const struct batch_norm *norm) {
    for (int m = 0; m < norm->c; m++) {
        struct batch_line line = batch_line(of_y, s, m);
        double sum = single ? (double)s->sums->sum[m] : batch_lanes_sum(s->sums->sum, norm, m);
        double product =
            single ? (double)s->sums->product[m] : batch_lanes_sum(s->sums->product, norm, m);
        plain[m] = (float)sum;
        along[m] = (float)((product - line.term * sum) / line.factor - (double)s->mean[m] * sum);
    }
}

static bool batch_errors_summed(float *plain, float *along, const struct batch_sums *s,
                                const struct batch_norm *norm) {
    bool of_y = s->factor;
    if (!(of_y ? batch_sums_tell(true, s, norm->c) : batch_sums_tell(false, s, norm->c)))
        return false;
    if (of_y && norm->lanes == 1)
        batch_take_sums(true, true, plain, along, s, norm);
    else
        batch_take_sums(of_y, false, plain, along, s, norm);
    return true;
}

static void batch_scale_block(float *y, const float *x, const float *more, const float *factor,
                              const float *term, float most, const struct batch_norm *norm,
                              float *scratch) {
    struct batch_arrays a = {.x = x, .more = more, .most = most, .out = y};
    int run = batch_run(norm);
    a.k[0] = batch_spread(batch_factors(norm, scratch, 0), factor, norm, norm->lanes);
    a.k[1] = batch_spread(batch_factors(norm, scratch, 1), term, norm, norm->lanes);
    for (int b = 0; b < batch_blocks(norm); b++)
        if (more && most > 0)
            batch_pixels(BATCH_SUM, true, batch_at(a, norm, b), 0, norm->pixels, run);
        else if (more)
            batch_pixels(BATCH_SUM, false, batch_at(a, norm, b), 0, norm->pixels, run);
        else if (most > 0)
            batch_pixels(BATCH_SCALE, true, batch_at(a, norm, b), 0, norm->pixels, run);
        else
            batch_pixels(BATCH_SCALE, false, batch_at(a, norm, b), 0, norm->pixels, run);
}

static void batch_errors_block(float *plain, float *along, float *dy, const float *outputs,
                               float most, const float *x, const float *mean,
                               const struct batch_norm *norm, float *scratch) {
    const double *of_maps = (const double *)(const void *)scratch;
    struct batch_arrays a = {.x = x, .dy = dy, .outputs = outputs, .most = most, .out = dy};
    a.k[0] = batch_spread(batch_factors(norm, scratch, 0), mean, norm, norm->lanes);
    if (outputs)
        batch_sum(BATCH_ERRORS, true, a, norm, scratch);
    else
        batch_sum(BATCH_ERRORS, false, a, norm, scratch);
    for (int m = 0; m < norm->c; m++) {
        plain[m] = (float)of_maps[m];
        along[m] = (float)of_maps[norm->c + m];
    }
}

static void batch_back_block(float *dx, const float *dy, const float *x, const float *factor,
                             const float *slope, const float *term, const struct batch_norm *norm,
                             float *scratch) {
    const float *const of_maps[] = {factor, slope, term};
    struct batch_arrays a = {.x = x, .dy = dy, .out = dx};
    for (int b = 0; b < batch_blocks(norm); b++) {
        for (int f = 0; f < 3; f++)
            a.k[f] = batch_spread(batch_factors(norm, scratch, f), of_maps[f], norm,
                                  batch_lanes(norm, b));
        batch_pixels(BATCH_BACK, false, batch_at(a, norm, b), 0, norm->pixels, batch_run(norm));
    }
}

const struct batch_norm_kernels FAMILY(batch_norm_blocks) = {
    .measure = batch_measure_block,
    .measure_summed = batch_measure_summed,
    .scale = batch_scale_block,
    .errors = batch_errors_block,
    .errors_summed = batch_errors_summed,
    .back = batch_back_block,
};

#endif
