// What becomes of the results of a convolution (struct conv_ends, struct conv_sums) when some have
// been written and lie in a cache still.
#ifndef ADAM_KERNELS_BLOCK_ENDS_INC_H
#define ADAM_KERNELS_BLOCK_ENDS_INC_H

#include <math.h>
#include <string.h>

#include "kernels/block/run.inc.h"
#include "kernels/conv.h"

enum { ENDS_VECTORS = 4 }; // of a run at a time

struct ends {
    float *results; // of all blocks
    size_t run;     // floats of a pixel
    int lanes;
    struct conv_ends errors; // of outputs: nothing
    struct conv_sums sums;   // sum: NULL: nobody wants any
};

static void ends_clear(const struct ends *e) {
    if (!e->sums.sum)
        return;
    memset(e->sums.sum, 0, e->run * sizeof(float));
    memset(e->sums.product, 0, e->run * sizeof(float));
}

// Of outputs; sums: NULL: nothing becomes of them.
static inline struct ends ends_of_outputs(const struct conv_sums *sums, float *y, size_t run,
                                          int lanes) {
    struct ends e = {.results = y, .run = run, .lanes = lanes};
    if (sums)
        e.sums = (struct conv_sums){sums->from, sums->sum, sums->product, NULL};
    ends_clear(&e);
    return e;
}

static struct ends ends_of_errors(const struct conv_ends *errors, float *dx, size_t run) {
    struct ends e = {.results = dx, .run = run, .errors = *errors};
    if (errors->sums)
        e.sums =
            (struct conv_sums){NULL, errors->sums->sum, errors->sums->product, errors->sums->other};
    ends_clear(&e);
    return e;
}

static bool ends_any(const struct ends *e) {
    return e->sums.sum || e->errors.more || e->errors.relu;
}

// A tile's way to its end: each flag where it is done.
struct ends_way {
    bool outputs, more, relu, sums, other;
};

struct ends_sums {
    vector from, sum, product;
};

// One vector, `at` floats behind the results.
__attribute__((always_inline)) static inline void
end_vector(struct ends_way way, struct ends e, size_t at, int count, struct ends_sums *s) {
    float *to = e.results + at;
    vector value = load_part(to, count);
    if (way.outputs) {
        value -= s->from;
        s->sum += value, s->product += value * value;
        return;
    }
    vector with = {0};
    if (way.more)
        value += load_part(e.errors.more + at, count);
    if (way.relu) {
        with = load_part(e.errors.relu + at, count);
        value = through_relu(value, with, e.errors.most);
    }
    if (way.more || way.relu)
        store_part(to, value, count);
    if (way.other)
        with = load_part(e.sums.other + at, count);
    if (way.sums)
        s->sum += value, s->product += value * with;
}

// `vectors` from float i of the run on, of some pixels, the first `at` floats behind the results.
__attribute__((always_inline)) static inline void end_tile(struct ends_way way, int vectors,
                                                           struct ends e, size_t at, size_t pixels,
                                                           size_t i, int count) {
    bool adds = way.outputs || way.sums;
    struct ends_sums s[ENDS_VECTORS] = {{{0}, {0}, {0}}};
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        size_t place = i + (size_t)v * LANES;
        if (way.outputs)
            s[v].from = load_part(e.sums.from + place, count);
        if (adds)
            s[v].sum = load_part(e.sums.sum + place, count),
            s[v].product = load_part(e.sums.product + place, count);
    }
    for (size_t p = 0; p < pixels; p++, at += e.run)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            end_vector(way, e, at + i + (size_t)v * LANES, count, &s[v]);
#pragma GCC unroll 4
    for (int v = 0; adds && v < vectors; v++) {
        size_t place = i + (size_t)v * LANES;
        store_part(e.sums.sum + place, s[v].sum, count);
        store_part(e.sums.product + place, s[v].product, count);
    }
}

__attribute__((always_inline)) static inline void
end_runs(struct ends_way way, const struct ends *of, size_t at, size_t pixels) {
    const struct ends e = *of;
    size_t i = 0;
    for (; i + ENDS_VECTORS * LANES <= e.run; i += ENDS_VECTORS * LANES)
        end_tile(way, ENDS_VECTORS, e, at, pixels, i, LANES);
    for (; i + 2 * LANES <= e.run; i += 2 * LANES)
        end_tile(way, 2, e, at, pixels, i, LANES);
    for (; i + LANES <= e.run; i += LANES)
        end_tile(way, 1, e, at, pixels, i, LANES);
    if (i < e.run)
        end_tile(way, 1, e, at, pixels, i, (int)(e.run - i));
}

// What sums of outputs begin from: the first of each map, in all its lanes.
static void find_first(const struct ends *e) {
    for (size_t i = 0; i < e->run; i += (size_t)e->lanes)
        for (int l = 0; l < e->lanes; l++)
            e->sums.from[i + (size_t)l] = e->results[i];
}

// Some pixels, the first of them `at` floats behind the results; those at 0 come first.
static void end_pixels(const struct ends *e, size_t at, size_t pixels) {
    const struct conv_ends *errors = &e->errors;
    struct ends_way way = {
        .more = errors->more, .relu = errors->relu, .sums = e->sums.sum, .other = e->sums.other};
    if (e->sums.from) {
        if (at == 0)
            find_first(e);
        end_runs((struct ends_way){.outputs = true}, e, at, pixels);
    } else if (way.relu && way.sums && !way.more && !way.other)
        end_runs((struct ends_way){.relu = true, .sums = true}, e, at, pixels);
    else if (ends_any(e))
        end_runs(way, e, at, pixels);
}

// Of all pixels, once they are written.
static void end_errors(float *dx, const struct conv_ends *errors, size_t pixels, size_t run) {
    struct ends e = ends_of_errors(errors, dx, run);
    end_pixels(&e, 0, pixels);
}

#endif
