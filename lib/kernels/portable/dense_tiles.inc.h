// The step of a dense layer for enough samples to keep the multipliers busy while the weights are
// read; or the error gradients, or the gradient, alone. No weight is packed.
//
// A strip of weights, up to TILE_DEPTH rows x 3 vectors, first adds to the error gradients of the
// inputs, FAMILY_TILE samples at a time, and then takes its step, FAMILY_TILE rows at a time, from
// sums in registers. More than TILES_MOST samples go part by part: first the error gradients of
// all of them, then the steps, which only those of sgd can.
//
// With scratch and enough units to pay for it, inputs and their error gradients are copied once to
// panels as wide as a strip, sample behind sample. In rows of 2560 inputs, 10 KB apart, the lines
// of a strip's samples would share 32 of the 1024 sets of an L2 cache.
//
// Error gradients are loaded last, and the steps of a strip ask for the weights of the next one.
// Figures: tests/bench/results/dense.txt.
#ifndef ADAM_KERNELS_PORTABLE_DENSE_TILES_INC_H
#define ADAM_KERNELS_PORTABLE_DENSE_TILES_INC_H

#include <stddef.h>
#include <string.h>

#include "core/hogwild.h"
#include "kernels/block/run.inc.h"
#include "kernels/cuts.h"
#include "kernels/dense.h"
#include "kernels/dense_sizes.h"
#include "kernels/portable/gemm.inc.h"
#include "kernels/portable/update.inc.h"

enum {
    TILES_MOST = DENSE_STEP_MOST, // samples at once
    TILE_DEPTH = 64,              // rows of a strip: fewer read the error gradients more often
    TILE_ERRORS = TILES_MOST * TILE_DEPTH, // of all samples, for the rows of a strip
    TILE_SIDE = FAMILY_TILE,               // x 3 vectors of sums
    TILE_WIDTH = 3 * LANES,
};

// A strip of weights of one group of rows.
struct weight_strip {
    float *w;                    // rows, `inputs` apart
    float *state;                // of the weights, likewise; NULL: by sgd
    const struct update *update; // the step; NULL: error gradients alone
    const float *x;              // n samples, `row` apart
    float *dx;                   // likewise
    const float *dy;             // n samples, TILE_DEPTH apart
    size_t inputs, depth, row;
    size_t panel;       // from the inputs of one strip to those of the next
    int n, rows, count; // count: inputs, less than LANES where there is one vector
    bool first;         // dx holds nothing yet
    const float *ahead; // weights to ask for, when they stream; NULL: none
};

// Error gradients of `samples` samples from sample i on: += dy W.
__attribute__((always_inline)) static inline void errors_tile(int samples, int vectors,
                                                              const struct weight_strip *s, int i) {
    vector sum[TILE_SIDE][3] = {0};
    int count = vectors == 1 ? s->count : LANES;
    float *dx = s->dx + (size_t)i * s->row;
    const float *dy = s->dy + (size_t)i * TILE_DEPTH, *w = s->w;
    for (int r = 0; r < s->rows; r++, w += s->inputs, dy++) {
        vector weight[3];
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            if (s->ahead)
                __builtin_prefetch(s->ahead + (r * vectors + v) * LANES);
            weight[v] = load_part(w + v * LANES, count);
        }
#pragma GCC unroll 8
        for (int a = 0; a < samples; a++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                sum[a][v] += dy[a * TILE_DEPTH] * weight[v];
    }
    if (!s->first) { // loaded last: at the beginning they would delay the sums
#pragma GCC unroll 8
        for (int a = 0; a < samples; a++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                sum[a][v] += load_part(dx + (size_t)a * s->row + v * LANES, count);
    }
#pragma GCC unroll 8
    for (int a = 0; a < samples; a++)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            store_part(dx + (size_t)a * s->row + v * LANES, sum[a][v], count);
}

__attribute__((always_inline)) static inline void sgd_tile(int rows, int vectors,
                                                           const struct weight_strip *s,
                                                           vector sum[][3], float *w, int count) {
    float rate = s->update->rate, decay = s->update->decay;
#pragma GCC unroll 8
    for (int a = 0; a < rows; a++)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            float *at = w + (size_t)a * s->inputs + v * LANES;
            vector old = load_part(at, count);
            store_part(at, old - rate * (sum[a][v] + decay * old), count);
        }
}

// By any other rule: row by row.
__attribute__((always_inline)) static inline void rule_tile(int rows, int vectors,
                                                            const struct weight_strip *s,
                                                            vector sum[][3], float *w, float *state,
                                                            int count) {
    float gradient[TILE_WIDTH] __attribute__((aligned(64)));
#pragma GCC unroll 8
    for (int a = 0; a < rows; a++) {
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            *(vector *)(gradient + v * LANES) = sum[a][v];
        update(w + (size_t)a * s->inputs, state + (size_t)a * s->inputs, gradient,
               (size_t)(vectors == 1 ? count : TILE_WIDTH), s->update);
    }
}

// The gradient of `rows` rows from row r on, and their step. Meanwhile weights of the next
// strip are asked for, line by line, unless they stream.
__attribute__((always_inline)) static inline void step_tile(int rows, int vectors, bool plain,
                                                            const struct weight_strip *s, int r) {
    vector sum[TILE_SIDE][3] = {0};
    int count = vectors == 1 ? s->count : LANES, lines = s->ahead ? 0 : rows * vectors;
    float *w = s->w + (size_t)r * s->inputs;
    const float *dy = s->dy + r, *x = s->x, *next = w + vectors * LANES;
    for (int i = 0; i < s->n; i++, dy += TILE_DEPTH, x += s->row) {
        vector input[3];
        if (i < lines)
            __builtin_prefetch(next + (size_t)(i / vectors) * s->inputs + i % vectors * LANES, 1);
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            input[v] = load_part(x + v * LANES, count);
#pragma GCC unroll 8
        for (int a = 0; a < rows; a++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                sum[a][v] += dy[a] * input[v];
    }
    if (plain)
        sgd_tile(rows, vectors, s, sum, w, count);
    else
        rule_tile(rows, vectors, s, sum, w, s->state + (size_t)r * s->inputs, count);
}

typedef void tile_work(const struct weight_strip *, int);

#define DENSE_TILE(a)                                                                              \
    HOGWILD static void errors_tile_##a(const struct weight_strip *s, int i) {                     \
        errors_tile(a, 3, s, i);                                                                   \
    }                                                                                              \
    HOGWILD static void errors_edge_##a(const struct weight_strip *s, int i) {                     \
        errors_tile(a, 1, s, i);                                                                   \
    }                                                                                              \
    HOGWILD static void sgd_tile_##a(const struct weight_strip *s, int r) {                        \
        step_tile(a, 3, true, s, r);                                                               \
    }                                                                                              \
    HOGWILD static void sgd_edge_##a(const struct weight_strip *s, int r) {                        \
        step_tile(a, 1, true, s, r);                                                               \
    }                                                                                              \
    HOGWILD static void rule_tile_##a(const struct weight_strip *s, int r) {                       \
        step_tile(a, 3, false, s, r);                                                              \
    }                                                                                              \
    HOGWILD static void rule_edge_##a(const struct weight_strip *s, int r) {                       \
        step_tile(a, 1, false, s, r);                                                              \
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
// Of sgd, and of any other rule.
static tile_work *const step_tiles[2][2][TILE_SIDE] = {
    {{DENSE_TILES(sgd_tile)}, {DENSE_TILES(sgd_edge)}},
    {{DENSE_TILES(rule_tile)}, {DENSE_TILES(rule_edge)}}};

// In as few tiles as there can be.
static void over_tiles(tile_work *const *work, const struct weight_strip *s, int count) {
    for (int i = 0; i < count; i += TILE_SIDE)
        work[(count - i < TILE_SIDE ? count - i : TILE_SIDE) - 1](s, i);
}

static void step_strip(struct weight_strip s, bool edge) {
    if (s.dx)
        over_tiles(errors_tiles[edge], &s, s.n);
    if (s.update)
        over_tiles(step_tiles[s.state != NULL][edge], &s, s.rows);
}

// Error gradients of rows, sample by sample, TILE_DEPTH apart.
static void gather_errors(float *to, const struct dense_errors *e, int first, int rows) {
    for (int i = 0; i < e->n; i++, to += TILE_DEPTH)
        memcpy(to, e->dy + (size_t)i * (size_t)e->units + first, (size_t)rows * sizeof *to);
}

// Whether the weights come from memory, which is the limit.
static bool tiles_stream(const struct dense_errors *e) {
    int units = e->of ? e->of : e->units;
    return e->n <= DENSE_STREAM_MOST && weights_far((size_t)units, (size_t)e->inputs);
}

// Rows of a group. A group reads and writes all error gradients of the inputs once, so many samples
// want many rows. Streaming weights are asked for a group ahead: with few samples large groups
// would be asked for too early.
static int dense_depth(const struct dense_errors *e) {
    if (tiles_stream(e))
        return e->n > 8 ? TILE_DEPTH / 4 : TILE_DEPTH / 8;
    return TILE_DEPTH;
}

// Steps units [first, last), with inputs and error gradients laid out as in `all`.
static void tiles_units(const struct weight_strip *all, float *weights, float *dy,
                        const struct dense_errors *e, int first, int last) {
    struct weight_strip s = *all;
    for (int r = first; r < last; r += (int)s.depth) {
        s.first = r == e->first && !e->add;
        s.rows = last - r < (int)s.depth ? last - r : (int)s.depth;
        s.w = weights + (size_t)r * s.inputs;
        s.state = all->state ? all->state + (size_t)r * s.inputs : NULL;
        s.ahead = tiles_stream(e) ? s.w + s.depth * s.inputs : NULL;
        s.x = all->x;
        s.dx = all->dx;
        gather_errors(dy, e, r, s.rows);
        for (int k = 0; k < e->inputs; k += s.count) {
            bool edge = e->inputs - k < TILE_WIDTH;
            s.count = !edge ? TILE_WIDTH : e->inputs - k < LANES ? e->inputs - k : LANES;
            step_strip(s, edge);
            size_t on = edge ? (size_t)s.count : s.panel;
            s.w += s.count, s.x += on;
            s.state = s.state ? s.state + s.count : NULL;
            s.dx = s.dx ? s.dx + on : NULL;
            s.ahead = s.ahead ? s.ahead + s.count * s.rows : NULL;
        }
    }
}

// Copies samples to panels of TILE_WIDTH inputs, panel behind panel, and back.
static void pack_panels(float *panels, const float *x, size_t n, size_t inputs) {
    for (size_t k = 0; k < inputs; k += TILE_WIDTH)
        for (size_t i = 0; i < n; i++, panels += TILE_WIDTH)
            memcpy(panels, x + i * inputs + k,
                   (inputs - k < TILE_WIDTH ? inputs - k : TILE_WIDTH) * sizeof *x);
}

static void unpack_panels(float *x, const float *panels, size_t n, size_t inputs) {
    for (size_t k = 0; k < inputs; k += TILE_WIDTH)
        for (size_t i = 0; i < n; i++, panels += TILE_WIDTH)
            memcpy(x + i * inputs + k, panels,
                   (inputs - k < TILE_WIDTH ? inputs - k : TILE_WIDTH) * sizeof *x);
}

static void tiles_in_panels(struct weight_strip *s, const struct dense_errors *e) {
    size_t n = (size_t)e->n, inputs = (size_t)e->inputs;
    s->row = TILE_WIDTH;
    s->panel = n * TILE_WIDTH;
    s->dx = e->dx ? e->scratch : NULL;
    s->x = e->scratch + cuts(e->inputs, TILE_WIDTH) * s->panel;
    if (s->update)
        pack_panels((float *)s->x, e->x, n, inputs);
    if (e->dx && e->add)
        pack_panels(s->dx, e->dx, n, inputs);
}

// Computes dx and the step, unless it is NULL.
static void tiles_pass(float *weights, float *state, const struct dense_errors *e,
                       const struct update *u) {
    float dy[TILE_ERRORS];
    bool panels = e->scratch && dense_step_scratch(e->n, e->units, e->inputs) > 0;
    struct weight_strip s = {.x = e->x,
                             .dx = e->dx,
                             .dy = dy,
                             .inputs = (size_t)e->inputs,
                             .depth = (size_t)dense_depth(e),
                             .row = (size_t)e->inputs,
                             .panel = TILE_WIDTH,
                             .n = e->n,
                             .state = state,
                             .update = u};
    if (panels)
        tiles_in_panels(&s, e);
    tiles_units(&s, weights, dy, e, e->first, e->units);
    tiles_units(&s, weights, dy, e, 0, e->first);
    if (panels && e->dx)
        unpack_panels(e->dx, s.dx, (size_t)e->n, (size_t)e->inputs);
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

static void dense_tiles_back_input(const struct dense_errors *e, const float *weights) {
    int parts = cuts(e->n, TILES_MOST);
    for (int i = 0; i < parts; i++) {
        struct dense_errors part = tiles_part(e, parts, i);
        tiles_pass((float *)weights, NULL, &part, NULL); // which writes no weight
    }
}

// The steps of parts by sgd, which add up to that of all.
static void tiles_sgd(float *weights, const struct dense_errors *e, struct update step) {
    int parts = cuts(e->n, TILES_MOST);
    for (int i = 0; i < parts; i++) {
        struct dense_errors part = tiles_part(e, parts, i);
        part.dx = NULL;
        tiles_pass(weights, NULL, &part, &step);
        step.decay = 0;
    }
}

// Steps that add the gradient to nothing.
static void dense_tiles_back_weights(float *dweights, const struct dense_errors *e) {
    memset(dweights, 0, (size_t)e->units * (size_t)e->inputs * sizeof *dweights);
    tiles_sgd(dweights, e, (struct update){.rule = RULE_SGD, .rate = -1});
}

// For rules other than sgd there may be one part only.
static void dense_tiles_step(float *weights, float *state, const struct dense_errors *e,
                             const struct update *u) {
    if (cuts(e->n, TILES_MOST) == 1) {
        tiles_pass(weights, u->rule == RULE_SGD ? NULL : state, e, u);
        return;
    }
    if (e->dx)
        dense_tiles_back_input(e, weights);
    tiles_sgd(weights, e, *u);
}

#endif
