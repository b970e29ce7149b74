// The forward pass of a dense layer for so many samples that arithmetic, not memory, is the limit:
// y^T = W x^T.
//
// The inputs of up to DENSE_VECTORS vectors of samples are transposed once, so that a sample is a
// lane and the inputs lie in panels of two or three vectors, or all in one, which stay in the L2
// cache while all weights pass. Each weight is broadcast from where it lies: none is packed,
// transposed, or read from memory more than once a block of samples. A tile of sums, FAMILY_TILE
// units x a panel, stays in registers over a block of inputs; the tiles of LANES units are
// transposed back together, onto the biases or the sums of earlier inputs.
//
// The tile itself asks for the next weights and outputs, a line or two every 16 inputs, or as many
// as there are of outputs for few inputs, and one of a single vector for a line of weights at each:
// all at once would fill the queue of misses and stall it. Figures: tests/bench/results/dense.txt.
#ifndef ADAM_KERNELS_PORTABLE_DENSE_FORWARD_INC_H
#define ADAM_KERNELS_PORTABLE_DENSE_FORWARD_INC_H

#include <stddef.h>

#include "core/hogwild.h"
#include "kernels/block/run.inc.h"
#include "kernels/cuts.h"
#include "kernels/dense.h"
#include "kernels/dense_sizes.h"
#include "kernels/portable/gemm.inc.h"

enum {
    PANEL_MOST = 3,               // vectors of samples
    UNITS_MOST = 2 * FAMILY_TILE, // of a tile of one vector; of others, half as many
};

struct forward_block;
struct forward_ahead;

// Takes the sums of `count` units from u on, at most LANES, for the samples of a panel from `at`
// on. put stores them; aim lets tile number t of their computation ask for the lines that put will
// touch.
typedef void forward_put_function(const struct forward_block *, const float *sums, int vectors,
                                  int at, int u, int count);
typedef void forward_aim_function(struct forward_ahead *, const struct forward_block *, int t,
                                  int vectors, int at, int u);

// Some samples and inputs of a layer.
struct forward_block {
    const float *x;       // transposed: panels of depth x vectors
    const float *weights; // of these inputs: rows, `inputs` apart
    const float *biases;  // NULL: zeros
    float *y;             // of these samples: rows, `units` apart
    int units, samples, depth;
    size_t inputs;
    bool first; // y holds nothing yet
    forward_put_function *put;
    forward_aim_function *aim;
    const void *taker; // the context of put and aim
};

// Lines that a tile asks for while it computes: rows of the next weights, and targets of its sums.
struct forward_ahead {
    const float *weights;
    int rows;
    const float *to; // lines, `step` apart
    int lines, each; // at a time
    size_t step;
};

__attribute__((always_inline)) static inline void
forward_fetch(struct forward_ahead *ahead, const struct forward_block *b, int at, int rows) {
    for (int r = 0; r < rows; r++)
        __builtin_prefetch(ahead->weights + (size_t)r * b->inputs + at, 0, 2);
    for (int i = 0; i < ahead->each && ahead->lines > 0;
         i++, ahead->lines--, ahead->to += ahead->step)
        __builtin_prefetch(ahead->to, 1);
}

// Computes the sums of `units` units from `weights` on: a panel each, unit behind unit.
__attribute__((always_inline)) static inline void
forward_tile(int units, int vectors, const struct forward_block *b, const float *weights,
             const float *x, float *sums, const struct forward_ahead *asked) {
    struct forward_ahead ahead = *asked;
    ahead.each = most_int(2, cuts(ahead.lines, cuts(b->depth, LINE)));
    vector sum[UNITS_MOST][PANEL_MOST] = {0};
    for (int k = 0, end; k < b->depth; k = end) {
        end = b->depth - k < LINE ? b->depth : k + LINE;
        forward_fetch(&ahead, b, k, vectors > 1 ? ahead.rows : 0);
        const float *ask = ahead.weights + k;
        const float *low = weights + k, *high = low + (size_t)FAMILY_TILE * b->inputs;
        for (int l = k; l < end; l++, low++, high++, x += vectors * LANES) {
            vector input[PANEL_MOST];
            if (vectors == 1 && l - k < ahead.rows) { // as many as inputs: one at a time
                __builtin_prefetch(ask, 0, 2);
                ask += b->inputs;
            }
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                input[v] = *(const vector *)(x + v * LANES);
#pragma GCC unroll 16
            for (int u = 0; u < units; u++)
#pragma GCC unroll 3
                for (int v = 0; v < vectors; v++)
                    sum[u][v] +=
                        (u < FAMILY_TILE ? low : high)[(size_t)(u % FAMILY_TILE) * b->inputs] *
                        input[v];
        }
    }
#pragma GCC unroll 16
    for (int u = 0; u < units; u++)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            *(vector *)(sums + (u * vectors + v) * LANES) = sum[u][v];
}

typedef void forward_function(const struct forward_block *, const float *, const float *, float *,
                              const struct forward_ahead *);

#define FORWARD(units, vectors)                                                                    \
    HOGWILD static void forward_##units##_##vectors(                                               \
        const struct forward_block *b, const float *weights, const float *x, float *sums,          \
        const struct forward_ahead *ahead) {                                                       \
        forward_tile(units, vectors, b, weights, x, sums, ahead);                                  \
    }
FORWARD(1, 1)
FORWARD(1, 2)
FORWARD(1, 3)
FORWARD(2, 1)
FORWARD(2, 2)
FORWARD(2, 3)
FORWARD(4, 1)
FORWARD(4, 2)
FORWARD(4, 3)
FORWARD(8, 1)
#if FAMILY_TILE > 4
FORWARD(8, 2)
FORWARD(8, 3)
FORWARD(16, 1)
#endif

// Indexed by the logarithm of the units, and by the vectors of the panel.
static forward_function *const forward_functions[][PANEL_MOST] = {
    {forward_1_1, forward_1_2, forward_1_3}, {forward_2_1, forward_2_2, forward_2_3},
    {forward_4_1, forward_4_2, forward_4_3},
#if FAMILY_TILE > 4
    {forward_8_1, forward_8_2, forward_8_3}, {forward_16_1},
#else
    {forward_8_1},
#endif
};

// Vectors of the next of the panels that so many are cut into: 4 are 2 + 2. One alone leaves
// registers idle, and is one only where there are no more.
static int panel_vectors(int left) {
    return left == 1 ? 1 : left == 4 || left < PANEL_MOST ? 2 : PANEL_MOST;
}

// Transposes the inputs of a block; zeros stand for samples that the last panel lacks.
static void forward_turn(float *to, const float *x, size_t inputs, int samples, int depth) {
    for (int at = 0, width; at < samples; at += width) {
        width = panel_vectors(cuts(samples - at, LANES)) * LANES;
        struct matrix part = {x + (size_t)at * inputs, 1, inputs};
        pack_transposed(to, width, part, depth, least_int(samples - at, width));
        to += depth * width;
    }
}

// Adds the sums of LANES units, for one panel, to the outputs, or to the biases at first.
HOGWILD static void forward_put(const struct forward_block *b, const float *sums, int vectors,
                                int at, int u, int count) {
    vector bias = b->biases ? load_part(b->biases + u, count) : (vector){0};
    float *y = b->y + (size_t)at * (size_t)b->units + u;
    int samples = least_int(b->samples - at, vectors * LANES);
    for (int v = 0; v * LANES < samples; v++) {
        vector some[LANES];
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            some[i] = *(const vector *)(sums + (i * vectors + v) * LANES);
        transpose_vectors(some);
        int rows = least_int(samples - v * LANES, LANES);
        for (int i = 0; i < rows; i++, y += b->units)
            store_part(y, some[i] + (b->first ? bias : load_part(y, count)), count);
    }
}

// Asks for the outputs of the first tile; those of the others lie in the same lines.
static void forward_aim(struct forward_ahead *ahead, const struct forward_block *b, int t,
                        int vectors, int at, int u) {
    ahead->to = b->y + (size_t)at * (size_t)b->units + u;
    ahead->step = (size_t)b->units;
    ahead->lines = t == 0 ? least_int(b->samples - at, vectors * LANES) : 0;
}

// Logarithm of the largest power of two of units that a tile can have.
static int forward_log(int units, int vectors) {
    int log = 0, most = vectors == 1 ? UNITS_MOST : FAMILY_TILE;
    while (2 << log <= least_int(units, most))
        log++;
    return log;
}

// Units [u, u + count), at most LANES, for the panel `x` of the samples from `at` on,
// meanwhile asking for `ahead`.
static void forward_panel(const struct forward_block *b, int u, int count, const float *x,
                          int vectors, int at, const struct forward_ahead *asked) {
    struct forward_ahead ahead = *asked;
    float sums[LANES * PANEL_MOST * LANES] __attribute__((aligned(64)));
    const float *weights = b->weights + (size_t)u * b->inputs;
    int rows = ahead.rows;
    for (int done = 0, log, t = 0; done < count; done += 1 << log, t++) {
        log = forward_log(count - done, vectors);
        ahead.rows = cut(rows, count, done + (1 << log)) - cut(rows, count, done);
        b->aim(&ahead, b, t, vectors, at, u);
        forward_functions[log][vectors - 1](b, weights + (size_t)done * b->inputs, x,
                                            sums + done * vectors * LANES, &ahead);
        ahead.weights += (size_t)ahead.rows * b->inputs;
    }
    b->put(b, sums, vectors, at, u, count);
}

// Units [first, last).
static void forward_units(const struct forward_block *b, int first, int last) {
    int vectors = cuts(b->samples, LANES), panels = cuts(vectors, PANEL_MOST);
    for (int u = first, count; u < last; u += count) {
        count = least_int(last - u, LANES);
        int next = least_int(last - u - count, LANES);
        struct forward_ahead ahead = {.weights = b->weights + (size_t)(u + count) * b->inputs};
        const float *x = b->x;
        for (int p = 0, at = 0, some; p < panels; p++, at += some) {
            some = panel_vectors(vectors - at);
            ahead.rows = cut(next, panels, p + 1) - cut(next, panels, p);
            forward_panel(b, u, count, x, some, at * LANES, &ahead);
            ahead.weights += (size_t)ahead.rows * b->inputs;
            x += b->depth * some * LANES;
        }
    }
}

// A layer and its samples: `inputs` and `units` also part the rows.
struct forward_layer {
    float *y;
    const float *x, *weights, *biases;
    int n, units, inputs;
    float *scratch;
};

// A part of a layer: units [first, last), starting at `begin` and wrapping around, over inputs
// [from, to), added to the sums of earlier inputs.
struct forward_part {
    int first, last, begin;
    int from, to;
};

// In blocks of samples and inputs, as equal as whole vectors and lines allow.
static void forward_part(const struct forward_layer *l, const struct forward_part *part) {
    int vectors = cuts(l->n, LANES), blocks = cuts(vectors, DENSE_VECTORS);
    int lines = cuts(part->to - part->from, LINE), depths = cuts(lines, DENSE_DEPTH / LINE);
    struct forward_block b = {.x = l->scratch,
                              .biases = l->biases,
                              .units = l->units,
                              .inputs = (size_t)l->inputs,
                              .put = forward_put,
                              .aim = forward_aim};
    for (int i = 0; i < blocks; i++) {
        size_t at = (size_t)cut(vectors, blocks, i) * LANES;
        b.samples = least_int(l->n, cut(vectors, blocks, i + 1) * LANES) - (int)at;
        b.y = l->y + at * (size_t)l->units;
        for (int k = 0; k < depths; k++) {
            int from = part->from + cut(lines, depths, k) * LINE;
            int to = least_int(part->to, part->from + cut(lines, depths, k + 1) * LINE);
            b.first = from == 0;
            b.depth = to - from;
            b.weights = l->weights + from;
            forward_turn(l->scratch, l->x + at * b.inputs + from, b.inputs, b.samples, b.depth);
            forward_units(&b, part->begin, part->last);
            forward_units(&b, part->first, part->begin);
        }
    }
}

static void dense_forward(float *y, const float *x, const float *weights, const float *biases,
                          int n, int units, int inputs, int first, float *scratch) {
    const struct forward_layer layer = {y, x, weights, biases, n, units, inputs, scratch};
    forward_part(&layer, &(struct forward_part){.last = units, .begin = first, .to = inputs});
}

#endif
