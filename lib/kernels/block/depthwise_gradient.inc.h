// The gradients of depthwise convolutions of blocks (depthwise.inc.h): products of the error
// gradients and of what a tap sees, float by float of a run, are summed over all pixels; at the end
// over the samples beside one another.
#ifndef ADAM_KERNELS_BLOCK_DEPTHWISE_GRADIENT_INC_H
#define ADAM_KERNELS_BLOCK_DEPTHWISE_GRADIENT_INC_H

#include <string.h>

#include "kernels/block/conv_plan.inc.h"
#include "kernels/block/depthwise_weights.inc.h"
#include "kernels/block/run.inc.h"
#include "kernels/conv_sizes.h"
#include "kernels/portable/carve.inc.h"

enum { DEPTHWISE_ROWS = 3, DEPTHWISE_COLUMNS = 5 }; // of taps whose sums stay in registers

struct depthwise_sums {
    struct conv_axis y, x;
    size_t run;
    float *taps, *biases; // taps x run; a run, or NULL: nobody wants them
    struct conv_run *rows, *columns;
    int row_runs, column_runs;
};

// Error gradients in a row, what their first taps see, and the sums of these taps.
struct depthwise_errors {
    const float *dy, *from;
    float *sums;
    size_t run, from_row, from_next; // from tap to tap, and from error gradient to error gradient
    size_t sums_row;
    int count; // error gradients
};

__attribute__((always_inline)) static inline void
depthwise_sums_vector(int rows, int columns, const struct depthwise_errors *e, size_t i,
                      int count) {
    vector sum[DEPTHWISE_ROWS][DEPTHWISE_COLUMNS];
    const float *dy = e->dy + i, *from = e->from + i;
#pragma GCC unroll 3
    for (int ky = 0; ky < rows; ky++)
#pragma GCC unroll 5
        for (int kx = 0; kx < columns; kx++)
            sum[ky][kx] =
                load_part(e->sums + (size_t)ky * e->sums_row + (size_t)kx * e->run + i, count);
    for (int p = 0; p < e->count; p++, dy += e->run, from += e->from_next) {
        vector error = load_part(dy, count);
#pragma GCC unroll 3
        for (int ky = 0; ky < rows; ky++)
#pragma GCC unroll 5
            for (int kx = 0; kx < columns; kx++)
                sum[ky][kx] +=
                    error * load_part(from + (size_t)ky * e->from_row + (size_t)kx * e->run, count);
    }
#pragma GCC unroll 3
    for (int ky = 0; ky < rows; ky++)
#pragma GCC unroll 5
        for (int kx = 0; kx < columns; kx++)
            store_part(e->sums + (size_t)ky * e->sums_row + (size_t)kx * e->run + i, sum[ky][kx],
                       count);
}

__attribute__((always_inline)) static inline void
depthwise_sums_run(int rows, int columns, const struct depthwise_errors *e) {
    size_t i = 0;
    for (; i + LANES <= e->run; i += LANES)
        depthwise_sums_vector(rows, columns, e, i, LANES);
    if (i < e->run)
        depthwise_sums_vector(rows, columns, e, i, (int)(e->run - i));
}

// What is seen of kernels of 3 at a time.
#define DEPTHWISE_SUMS(rows, columns)                                                              \
    static void depthwise_sums_##rows##columns(const struct depthwise_errors *e) {                 \
        depthwise_sums_run(rows, columns, e);                                                      \
    }
DEPTHWISE_SUMS(1, 1)
DEPTHWISE_SUMS(1, 2)
DEPTHWISE_SUMS(1, 3)
DEPTHWISE_SUMS(2, 1)
DEPTHWISE_SUMS(2, 2)
DEPTHWISE_SUMS(2, 3)
DEPTHWISE_SUMS(3, 1)
DEPTHWISE_SUMS(3, 2)
DEPTHWISE_SUMS(3, 3)
#undef DEPTHWISE_SUMS

typedef void depthwise_sums_function(const struct depthwise_errors *);

static depthwise_sums_function *const depthwise_sums_of[3][3] = {
    {depthwise_sums_11, depthwise_sums_12, depthwise_sums_13},
    {depthwise_sums_21, depthwise_sums_22, depthwise_sums_23},
    {depthwise_sums_31, depthwise_sums_32, depthwise_sums_33},
};

static void depthwise_sums_columns(const struct depthwise_errors *e, int columns) {
    if (columns == 5)
        depthwise_sums_run(1, 5, e);
    else
        depthwise_sums_of[0][columns - 1](e);
}

// A square of taps at a time, or else some of a row.
static void depthwise_sums_taps(struct depthwise_errors e, int rows, int columns) {
    if (rows <= 3 && columns <= 3) {
        if (rows > 0 && columns > 0)
            depthwise_sums_of[rows - 1][columns - 1](&e);
        return;
    }
    for (int ky = 0; ky < rows; ky++, e.from += e.from_row, e.sums += e.sums_row) {
        struct depthwise_errors some = e;
        for (int kx = 0, step; kx < columns; kx += step) {
            step = columns - kx >= 5 ? 5 : columns - kx >= 3 ? 3 : 1;
            depthwise_sums_columns(&some, step);
            some.from += (size_t)step * e.run, some.sums += (size_t)step * e.run;
        }
    }
}

// Adds the error gradients of a row.
static void depthwise_row_biases(const struct depthwise_sums *s, const float *dy) {
    for (size_t i = 0; i < s->run; i += LANES) {
        int count = s->run - i < LANES ? (int)(s->run - i) : LANES;
        vector sum = load_part(s->biases + i, count);
        for (int p = 0; p < s->x.results; p++)
            sum += load_part(dy + (size_t)p * s->run + i, count);
        store_part(s->biases + i, sum, count);
    }
}

// Row `i` of a run.
static void depthwise_sums_row(const struct depthwise_sums *s, const float *dy, const float *x,
                               const struct conv_run *row, int i) {
    size_t errors_row = (size_t)s->x.results * s->run, from_row = (size_t)s->x.sources * s->run;
    dy += (size_t)(row->to + i) * errors_row;
    x += (size_t)(row->from + i * s->y.step) * from_row;
    for (const struct conv_run *c = s->columns; c < s->columns + s->column_runs; c++)
        depthwise_sums_taps(
            (struct depthwise_errors){
                .dy = dy + (size_t)c->to * s->run,
                .from = x + (size_t)c->from * s->run,
                .sums = s->taps + (size_t)(row->tap * s->x.kernel + c->tap) * s->run,
                .run = s->run,
                .from_row = from_row,
                .from_next = (size_t)s->x.step * s->run,
                .sums_row = (size_t)s->x.kernel * s->run,
                .count = c->count,
            },
            row->taps, c->taps);
    if (s->biases)
        depthwise_row_biases(s, dy);
}

// Cuts the scratch as add_depthwise() in conv_sizes.c counts it.
static void depthwise_back_weights(float *dweights, float *dbiases, const float *dy, const float *x,
                                   int blocks, int lanes, const struct convolution *conv,
                                   float *scratch) {
    const struct window *v = &conv->window;
    size_t taps = conv_taps(conv);
    struct depthwise_sums s = {
        .y = {v->out_h, v->h, v->kernel_h, v->pad_h, v->stride_h, 1, false},
        .x = {v->out_w, v->w, v->kernel_w, v->pad_w, v->stride_w, 1, false},
        .run = (size_t)v->c * (size_t)lanes,
    };
    s.taps = carve(&scratch, taps * s.run);
    s.biases = dbiases ? carve(&scratch, s.run) : NULL;
    s.rows = (void *)carve(&scratch, CONV_FLOATS(struct conv_run) * (size_t)v->out_h);
    s.columns = (void *)carve(&scratch, CONV_FLOATS(struct conv_run) * (size_t)v->out_w);
    s.row_runs = axis_runs(s.rows, &s.y);
    s.column_runs = axis_runs(s.columns, &s.x);
    memset(s.taps, 0, taps * s.run * sizeof *s.taps);
    if (s.biases)
        memset(s.biases, 0, s.run * sizeof *s.biases);
    for (int b = 0; b < blocks; b++) {
        for (const struct conv_run *r = s.rows; r < s.rows + s.row_runs; r++)
            for (int i = 0; i < r->count; i++)
                depthwise_sums_row(&s, dy, x, r, i);
        dy += window_out_pixels(v) * s.run;
        x += (size_t)v->h * (size_t)v->w * s.run;
    }
    depthwise_fold_weights(dweights, s.taps, (int)taps, v->c, lanes);
    if (s.biases)
        depthwise_fold_weights(dbiases, s.biases, 1, v->c, lanes);
}

#endif
