// The step of a dense layer for as many samples as keep the multipliers busy while the
// weights come in, none of which need be packed.
//
// A strip of weights, up to TILE_DEPTH rows x 3 vectors, adds to the errors of
// the inputs, FAMILY_TILE samples at a time, and then takes its step, FAMILY_TILE
// rows at a time, while the next strips come into the cache in the order in which
// they lie. More samples than stay in the caches go part by part: first the errors of
// all of them, then the steps.
#ifndef ADAM_KERNELS_PORTABLE_DENSE_TILES_H
#define ADAM_KERNELS_PORTABLE_DENSE_TILES_H

#include <stddef.h>

#include "core/hogwild.h"
#include "kernels/block/run.h"
#include "kernels/kernels.h"
#include "kernels/portable/gemm.h"
#include "kernels/portable/update.h"

enum {
    TILES_MOST = 512,        // samples at once
    TILE_DEPTH = 64,         // rows of a strip
    TILE_ERRORS = 32 * 1024, // of all samples, for the rows of a strip
    TILE_SIDE = FAMILY_TILE, // x 3 vectors of sums
    TILE_WIDTH = 3 * LANES,
    TILES_CACHED = 1024 * 1024, // weights that are taken to stay in the L3 cache
};

// A strip of weights of one group of rows.
struct weight_strip {
    float *w;        // rows, `inputs` apart
    const float *x;  // n samples, `inputs` apart
    float *dx;       // likewise
    const float *dy; // n samples, `depth` apart
    size_t inputs, depth;
    int n, rows, count; // count: inputs, less than LANES where there is one vector
    bool first;         // dx holds nothing yet
    bool stays;         // no step
    float rate, decay;
    const float *ahead; // weights that will be read soon, as many as are here
};

// Errors of `samples` samples from sample i on: += dy W.
__attribute__((always_inline)) static inline void errors_tile(int samples, int vectors,
                                                              const struct weight_strip *s, int i) {
    vector sum[TILE_SIDE][3] = {0};
    int count = vectors == 1 ? s->count : LANES;
    float *dx = s->dx + (size_t)i * s->inputs;
    const float *dy = s->dy + (size_t)i * s->depth, *w = s->w, *ahead = s->ahead;
    if (!s->first)
#pragma GCC unroll 8
        for (int a = 0; a < samples; a++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                sum[a][v] = load_part(dx + (size_t)a * s->inputs + v * LANES, count);
    for (int r = 0; r < s->rows; r++, w += s->inputs, dy++, ahead += vectors * LANES) {
        vector weight[3];
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            __builtin_prefetch(ahead + v * LANES);
            weight[v] = load_part(w + v * LANES, count);
        }
#pragma GCC unroll 8
        for (int a = 0; a < samples; a++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                sum[a][v] += dy[(size_t)a * s->depth] * weight[v];
    }
#pragma GCC unroll 8
    for (int a = 0; a < samples; a++)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            store_part(dx + (size_t)a * s->inputs + v * LANES, sum[a][v], count);
}

// The gradient of `rows` rows from row r on, and their step.
__attribute__((always_inline)) static inline void step_tile(int rows, int vectors,
                                                            const struct weight_strip *s, int r) {
    vector sum[TILE_SIDE][3] = {0};
    int count = vectors == 1 ? s->count : LANES;
    float *w = s->w + (size_t)r * s->inputs;
    const float *dy = s->dy + r, *x = s->x;
    for (int i = 0; i < s->n; i++, dy += s->depth, x += s->inputs) {
        vector input[3];
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            input[v] = load_part(x + v * LANES, count);
#pragma GCC unroll 8
        for (int a = 0; a < rows; a++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                sum[a][v] += dy[a] * input[v];
    }
#pragma GCC unroll 8
    for (int a = 0; a < rows; a++)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            float *at = w + (size_t)a * s->inputs + v * LANES;
            vector old = load_part(at, count);
            store_part(at, old - s->rate * (sum[a][v] + s->decay * old), count);
        }
}

typedef void tile_work(const struct weight_strip *, int);

#define DENSE_TILE(a)                                                                              \
    HOGWILD static void errors_tile_##a(const struct weight_strip *s, int i) {                     \
        errors_tile(a, 3, s, i);                                                                   \
    }                                                                                              \
    HOGWILD static void errors_edge_##a(const struct weight_strip *s, int i) {                     \
        errors_tile(a, 1, s, i);                                                                   \
    }                                                                                              \
    HOGWILD static void step_tile_##a(const struct weight_strip *s, int r) {                       \
        step_tile(a, 3, s, r);                                                                     \
    }                                                                                              \
    HOGWILD static void step_edge_##a(const struct weight_strip *s, int r) {                       \
        step_tile(a, 1, s, r);                                                                     \
    }
#define DENSE_TILES(name) name##_1, name##_2, name##_3, name##_4
DENSE_TILE(1)
DENSE_TILE(2)
DENSE_TILE(3)
DENSE_TILE(4)
#if FAMILY_TILE > 4
#undef DENSE_TILES
#define DENSE_TILES(name)                                                                          \
    name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7, name##_8
DENSE_TILE(5)
DENSE_TILE(6)
DENSE_TILE(7)
DENSE_TILE(8)
#endif

// Of whole strips, and of those of one vector.
static tile_work *const errors_tiles[2][TILE_SIDE] = {{DENSE_TILES(errors_tile)},
                                                      {DENSE_TILES(errors_edge)}};
static tile_work *const step_tiles[2][TILE_SIDE] = {{DENSE_TILES(step_tile)},
                                                    {DENSE_TILES(step_edge)}};

// In as few tiles as there can be.
static void over_tiles(tile_work *const *work, const struct weight_strip *s, int count) {
    for (int i = 0; i < count; i += TILE_SIDE)
        work[(count - i < TILE_SIDE ? count - i : TILE_SIDE) - 1](s, i);
}

static void step_strip(struct weight_strip s, bool edge) {
    if (s.dx)
        over_tiles(errors_tiles[edge], &s, s.n);
    if (!s.stays)
        over_tiles(step_tiles[edge], &s, s.rows);
}

// Errors of rows, sample by sample, `depth` apart.
static void gather_errors(float *to, size_t depth, const struct dense_errors *e, int first,
                          int rows) {
    for (int i = 0; i < e->n; i++)
        for (int r = 0; r < rows; r++)
            to[(size_t)i * depth + (size_t)r] =
                e->dy[(size_t)i * (size_t)e->units + (size_t)(first + r)];
}

// Rows of a group: each reads and writes all errors of the inputs once, so many rows
// when there are many samples. Where the weights come from memory, the fewer samples
// there are the sooner the next group is read: it must not come too long before.
static int dense_depth(const struct dense_errors *e) {
    bool cached = (size_t)e->units * (size_t)e->inputs <= TILES_CACHED;
    int room = TILE_ERRORS / e->n;
    if (cached || e->n > 32)
        return room < TILE_DEPTH ? room : TILE_DEPTH;
    return e->n > 8 ? TILE_DEPTH / 4 : TILE_DEPTH / 8;
}

// The step of units [first, last).
static void tiles_sgd_units(struct weight_strip s, float *weights, float *dy,
                            const struct dense_errors *e, int first, int last) {
    for (int r = first; r < last; r += (int)s.depth) {
        s.first = r == e->first;
        s.rows = last - r < (int)s.depth ? last - r : (int)s.depth;
        s.w = weights + (size_t)r * s.inputs;
        s.ahead = s.w + s.depth * s.inputs;
        s.x = e->x;
        s.dx = e->dx;
        gather_errors(dy, s.depth, e, r, s.rows);
        for (int k = 0; k < e->inputs; k += s.count) {
            bool edge = e->inputs - k < TILE_WIDTH;
            s.count = !edge ? TILE_WIDTH : e->inputs - k < LANES ? e->inputs - k : LANES;
            step_strip(s, edge);
            s.w += s.count, s.x += s.count, s.ahead += s.count * s.rows;
            s.dx = s.dx ? s.dx + s.count : NULL;
        }
    }
}

// dx, if wanted, and the step, unless the weights stay.
static void tiles_pass(float *weights, const struct dense_errors *e, float rate, float decay,
                       bool stays) {
    float dy[TILE_ERRORS];
    const struct weight_strip s = {.dy = dy,
                                   .inputs = (size_t)e->inputs,
                                   .depth = (size_t)dense_depth(e),
                                   .n = e->n,
                                   .stays = stays,
                                   .rate = rate,
                                   .decay = decay};
    tiles_sgd_units(s, weights, dy, e, e->first, e->units);
    tiles_sgd_units(s, weights, dy, e, 0, e->first);
}

// Part i of the samples of e, in equal parts.
static struct dense_errors tiles_part(const struct dense_errors *e, int parts, int i) {
    struct dense_errors part = *e;
    size_t first = (size_t)cut(e->n, parts, i), inputs = (size_t)e->inputs;
    part.n = cut(e->n, parts, i + 1) - (int)first;
    part.dy += first * (size_t)e->units;
    part.x += first * inputs;
    part.dx = e->dx ? e->dx + first * inputs : NULL;
    return part;
}

static void dense_tiles_sgd(float *weights, const struct dense_errors *e, const struct update *u) {
    int parts = cuts(e->n, TILES_MOST);
    if (parts == 1) {
        tiles_pass(weights, e, u->rate, u->decay, false);
        return;
    }
    for (int i = 0; e->dx && i < parts; i++) {
        struct dense_errors part = tiles_part(e, parts, i);
        tiles_pass(weights, &part, 0, 0, true);
    }
    for (int i = 0; i < parts; i++) {
        struct dense_errors part = tiles_part(e, parts, i);
        part.dx = NULL;
        tiles_pass(weights, &part, u->rate, i == 0 ? u->decay : 0, false);
    }
}

#endif
