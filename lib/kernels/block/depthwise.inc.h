// Convolutions of blocks each of whose groups has one channel and one map: depthwise ones.
// What a tap sees of a pixel, and what becomes of it, is one contiguous run of c * lanes
// floats, so every step is elementwise over runs, by weights that stand once for each float of
// a run. The forward pass and the error gradients of inputs are the same sum over taps
// (conv_plan.inc.h).
#ifndef ADAM_KERNELS_BLOCK_DEPTHWISE_INC_H
#define ADAM_KERNELS_BLOCK_DEPTHWISE_INC_H

#include "kernels/block/conv_plan.inc.h"
#include "kernels/block/depthwise_weights.inc.h"
#include "kernels/block/ends.inc.h"
#include "kernels/block/run.inc.h"
#include "kernels/block/spread.inc.h"
#include "kernels/conv_sizes.h"
#include "kernels/portable/carve.inc.h"

enum {
    DEPTHWISE_PIXELS = 4,      // that share the loads of the weights
    DEPTHWISE_SMALL = 8 << 10, // floats: most of an L1 cache
};

struct depthwise_pass {
    struct conv_axis y, x;
    size_t run; // floats of a pixel
    int blocks;
    bool relu;
    struct ends ends;
    float *weights, *begin;          // taps x run; a run with which sums begin
    struct conv_run *rows, *columns; // results that see the same taps
    int row_runs, column_runs;
};

// Results in a row whose first taps see `from`, and what lies between.
struct depthwise_view {
    const float *from, *weights, *begin;
    float *to;
    size_t run, from_row;         // from tap to tap
    size_t from_next, to_next;    // from result to result
    ptrdiff_t weight, weight_row; // from tap to tap
    int rows, columns;            // of taps
    bool relu;
};

// What so many taps beside each other see.
__attribute__((always_inline)) static inline void
depthwise_see(vector *seen, int columns, const float *from, size_t run, int count) {
#pragma GCC unroll 6
    for (int k = 0; k < columns; k++)
        seen[k] = load_part(from + (size_t)k * run, count);
}

// Adds what a row of taps sees from `from` on. near: results lie as close as taps do, so that each
// sees what the one before it does but for one; then there are at most 3 columns.
__attribute__((always_inline)) static inline void
depthwise_taps(int columns, int pixels, bool near, const struct depthwise_view *v,
               const float *from, const float *weights, vector *sum, int count) {
    vector seen[3 + DEPTHWISE_PIXELS - 1];
    if (near)
        depthwise_see(seen, columns + pixels - 1, from, v->run, count);
#pragma GCC unroll 3
    for (int kx = 0; kx < columns; kx++) {
        vector weight = load_part(weights + kx * v->weight, count);
#pragma GCC unroll 4
        for (int p = 0; p < pixels; p++) {
            size_t at = (size_t)kx * v->run + (size_t)p * v->from_next;
            sum[p] += weight * (near ? seen[kx + p] : load_part(from + at, count));
        }
    }
}

__attribute__((always_inline)) static inline void depthwise_vector(int rows, int columns,
                                                                   int pixels, bool near,
                                                                   const struct depthwise_view *v,
                                                                   size_t i, int count) {
    vector sum[DEPTHWISE_PIXELS], zero = {0};
    const float *from = v->from + i, *weights = v->weights + i;
    float *to = apart_to(v->to + i);
#pragma GCC unroll 4
    for (int p = 0; p < pixels; p++)
        __builtin_prefetch(to + (size_t)p * v->to_next + RUN_AHEAD, 1);
#pragma GCC unroll 4
    for (int p = 0; p < pixels; p++)
        sum[p] = load_part(v->begin + i, count);
#pragma GCC unroll 3
    for (int ky = 0; ky < rows; ky++, from += v->from_row, weights += v->weight_row)
        depthwise_taps(columns, pixels, near, v, apart(from), apart(weights), sum, count);
#pragma GCC unroll 4
    for (int p = 0; p < pixels; p++)
        store_part(to + (size_t)p * v->to_next,
                   v->relu ? (vector)((vector_int)sum[p] & ~(sum[p] < zero)) : sum[p], count);
}

// The last vector overlaps the one before, where part of it is all there is left.
__attribute__((always_inline)) static inline void
depthwise_run(int rows, int columns, int pixels, bool near, const struct depthwise_view *v) {
    if (v->run < LANES) {
        depthwise_vector(rows, columns, pixels, near, v, 0, (int)v->run);
        return;
    }
    for (size_t i = 0; i + LANES < v->run; i += LANES)
        depthwise_vector(rows, columns, pixels, near, v, i, LANES);
    depthwise_vector(rows, columns, pixels, near, v, v->run - LANES, LANES);
}

__attribute__((always_inline)) static inline void
depthwise_pixels(int rows, int columns, bool near, struct depthwise_view v, int count) {
    for (; count >= DEPTHWISE_PIXELS; count -= DEPTHWISE_PIXELS) {
        depthwise_run(rows, columns, DEPTHWISE_PIXELS, near, &v);
        v.from += DEPTHWISE_PIXELS * v.from_next, v.to += DEPTHWISE_PIXELS * v.to_next;
    }
    for (; count >= 2; count -= 2) {
        depthwise_run(rows, columns, 2, near, &v);
        v.from += 2 * v.from_next, v.to += 2 * v.to_next;
    }
    if (count > 0)
        depthwise_run(rows, columns, 1, near, &v);
}

// What is seen of kernels of 3, inside a picture and at its borders, is unrolled.
typedef void depthwise_function(const struct depthwise_view *, int count);

#define DEPTHWISE(rows, columns)                                                                   \
    static void depthwise_far_##rows##columns(const struct depthwise_view *v, int count) {         \
        depthwise_pixels(rows, columns, false, *v, count);                                         \
    }                                                                                              \
    static void depthwise_near_##rows##columns(const struct depthwise_view *v, int count) {        \
        depthwise_pixels(rows, columns, true, *v, count);                                          \
    }
DEPTHWISE(1, 1)
DEPTHWISE(1, 2)
DEPTHWISE(1, 3)
DEPTHWISE(2, 1)
DEPTHWISE(2, 2)
DEPTHWISE(2, 3)
DEPTHWISE(3, 1)
DEPTHWISE(3, 2)
DEPTHWISE(3, 3)
#undef DEPTHWISE

#define DEPTHWISE_TABLE(way)                                                                       \
    {                                                                                              \
        {depthwise_##way##_11, depthwise_##way##_12, depthwise_##way##_13},                        \
            {depthwise_##way##_21, depthwise_##way##_22, depthwise_##way##_23},                    \
            {depthwise_##way##_31, depthwise_##way##_32, depthwise_##way##_33},                    \
    }
static depthwise_function *const depthwise_of[2][3][3] = {DEPTHWISE_TABLE(far),
                                                          DEPTHWISE_TABLE(near)};
#undef DEPTHWISE_TABLE

static void depthwise_results(const struct depthwise_view *v, int count) {
    bool some = v->rows > 0 && v->columns > 0;
    if (some && v->rows <= 3 && v->columns <= 3)
        depthwise_of[v->from_next == v->run][v->rows - 1][v->columns - 1](v, count);
    else
        depthwise_pixels(v->rows, v->columns, false, *v, count);
}

// Row `i` of a run, and the columns of another, of one block.
static void depthwise_part(const struct depthwise_pass *p, float *to, const float *from,
                           const struct conv_run *row, int i, const struct conv_run *column) {
    size_t to_row = (size_t)p->x.results * p->run, from_row = (size_t)p->x.sources * p->run;
    ptrdiff_t next = p->x.turned ? -p->x.phases : 1, next_row = p->y.turned ? -p->y.phases : 1;
    int tap = axis_tap(&p->x, column->phase, column->tap);
    int tap_row = axis_tap(&p->y, row->phase, row->tap);
    bool some = row->taps > 0 && column->taps > 0;
    struct depthwise_view v = {
        .from =
            from + (size_t)(row->from + i * p->y.step) * from_row + (size_t)column->from * p->run,
        .weights = p->weights + (size_t)(some ? tap_row * p->x.kernel + tap : 0) * p->run,
        .begin = p->begin,
        .to = to + (size_t)(row->to + i * p->y.phases) * to_row + (size_t)column->to * p->run,
        .run = p->run,
        .from_row = from_row,
        .from_next = (size_t)p->x.step * p->run,
        .to_next = (size_t)p->x.phases * p->run,
        .weight = next * (ptrdiff_t)p->run,
        .weight_row = next_row * p->x.kernel * (ptrdiff_t)p->run,
        .rows = some ? row->taps : 0,
        .columns = column->taps,
        .relu = p->relu,
    };
    depthwise_results(&v, column->count);
}

static size_t depthwise_pixels_of_block(const struct depthwise_pass *p) {
    return (size_t)p->y.results * (size_t)p->x.results;
}

// Whether all results of a block stay in the L1 cache.
static bool depthwise_small(const struct depthwise_pass *p) {
    return depthwise_pixels_of_block(p) * p->run <= DEPTHWISE_SMALL;
}

// Row `i` of a run of one block, of results that begin `at` floats behind those of all.
static void depthwise_row(const struct depthwise_pass *p, size_t at, const float *from,
                          const struct conv_run *row, int i) {
    for (int c = 0; c < p->column_runs; c++)
        depthwise_part(p, p->ends.results + at, from, row, i, &p->columns[c]);
    size_t number = (size_t)(row->to + i * p->y.phases), pixels = (size_t)p->x.results;
    if (!depthwise_small(p))
        end_pixels(&p->ends, at + number * pixels * p->run, pixels);
}

// Row by row, so that the rows that taps share stay in a cache.
static void depthwise_convolve(struct depthwise_pass *p, const float *from) {
    size_t pixels = depthwise_pixels_of_block(p), results = pixels * p->run;
    size_t sources = (size_t)p->y.sources * (size_t)p->x.sources * p->run;
    p->row_runs = axis_runs(p->rows, &p->y);
    p->column_runs = axis_runs(p->columns, &p->x);
    for (int b = 0; b < p->blocks; b++, from += sources) {
        for (const struct conv_run *r = p->rows; r < p->rows + p->row_runs; r++)
            for (int i = 0; i < r->count; i++)
                depthwise_row(p, (size_t)b * results, from, r, i);
        if (depthwise_small(p))
            end_pixels(&p->ends, (size_t)b * results, pixels);
    }
}

// Cuts the scratch as add_depthwise() in conv_sizes.c counts it.
static void depthwise_spread(struct depthwise_pass *p, const float *weights, const float *biases,
                             int channels, int lanes, float *scratch) {
    int taps = p->y.kernel * p->x.kernel;
    p->run = (size_t)channels * (size_t)lanes;
    p->weights = carve(&scratch, (size_t)taps * p->run);
    p->begin = carve(&scratch, p->run);
    p->rows = (void *)carve(&scratch, CONV_FLOATS(struct conv_run) * (size_t)p->y.results);
    p->columns = (void *)carve(&scratch, CONV_FLOATS(struct conv_run) * (size_t)p->x.results);
    depthwise_spread_weights(p->weights, weights, taps, channels, lanes);
    spread(p->begin, biases, channels, lanes);
}

static void depthwise(float *y, const float *x, const float *weights, const float *biases,
                      bool relu, const struct conv_sums *sums, int blocks, int lanes,
                      const struct convolution *conv, float *scratch) {
    const struct window *v = &conv->window;
    struct depthwise_pass p = {
        .y = {v->out_h, v->h, v->kernel_h, v->pad_h, v->stride_h, 1, false},
        .x = {v->out_w, v->w, v->kernel_w, v->pad_w, v->stride_w, 1, false},
        .blocks = blocks,
        .relu = relu,
        .ends = ends_of_outputs(sums, y, (size_t)(v->c * lanes), lanes),
    };
    depthwise_spread(&p, weights, biases, v->c, lanes, scratch);
    depthwise_convolve(&p, x);
}

static void depthwise_back_input(float *dx, const float *dy, const float *weights,
                                 const struct conv_ends *ends, int blocks, int lanes,
                                 const struct convolution *conv, float *scratch) {
    const struct window *v = &conv->window;
    struct depthwise_pass p = {
        .y = {v->h, v->out_h, v->kernel_h, v->pad_h, 1, v->stride_h, true},
        .x = {v->w, v->out_w, v->kernel_w, v->pad_w, 1, v->stride_w, true},
        .blocks = blocks,
        .ends = ends_of_errors(ends, dx, (size_t)(v->c * lanes)),
    };
    depthwise_spread(&p, weights, NULL, v->c, lanes, scratch);
    depthwise_convolve(&p, dy);
}

#endif
