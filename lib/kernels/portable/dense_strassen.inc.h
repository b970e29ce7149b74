// The forward pass of a dense layer by fewer multiplications, for weights that stay as
// they are over many passes: one level of Strassen's scheme (Gaussian elimination is not
// optimal, 1969) on the pieces of dense_forward.inc.h.
//
// Samples, inputs and units are halved, so that y = x W^T is a product of 2 x 2 quarters:
//   I   = (x11 + x22) (w11 + w22)    to  y11,  y22
//   II  = (x21 + x22)  w11           to  y21, -y22
//   III =  x11        (w12 - w22)    to  y12,  y22
//   IV  =  x22        (w21 - w11)    to  y11,  y21
//   V   = (x11 + x12)  w22           to -y11,  y12
//   VI  = (x21 - x11) (w11 + w12)    to  y22
//   VII = (x12 - x22) (w21 + w22)    to  y11
// where wij is the transpose of W's quarter of units j and inputs i: 7 products for 8. The
// five sums of weights are made once and kept; two factors are quarters as they lie. Sums
// of inputs are made while these are turned. A product is added to its quarters of y while
// its tile lies in registers: as it comes, turned, in memory of its own; only the last one
// of a quarter turns it back, to the outputs. What halves leave over is for the panels.
//
// An output is a difference of products in which other samples take part: its rounding error is of
// the magnitude of a sample half of the block away (ALIKE). Among samples of equal norm it is at
// most 2.6e-7 of the norm of the sample times that of the unit's weights, rms 2.5e-8, for 2560
// inputs (panels: 0.9e-7, 1.3e-8).
//
// Products are gathered beside each other, not in y: rows of many outputs lie a multiple of 4 KiB
// apart, in few sets of the L2 cache. Figures: tests/bench/results/dense.txt.
#ifndef ADAM_KERNELS_PORTABLE_DENSE_STRASSEN_INC_H
#define ADAM_KERNELS_PORTABLE_DENSE_STRASSEN_INC_H

#include "kernels/cuts.h"
#include "kernels/portable/dense_forward.inc.h"
#include "kernels/portable/largest.inc.h"
#include "kernels/portable/stream.inc.h"

enum {
    PRODUCTS = 7,
    ALIKE = 64, // times another sample's largest input: costs 6 of 24 bits
};

// The table above as signs, [half of the rows][half of the columns]: of the inputs, samples x
// inputs; of the weights, units x inputs; of the outputs, samples x units.
static const struct {
    signed char x[2][2], w[2][2], y[2][2];
} products[PRODUCTS] = {
    {{{1, 0}, {0, 1}}, {{1, 0}, {0, 1}}, {{1, 0}, {0, 1}}},
    {{{0, 0}, {1, 1}}, {{1, 0}, {0, 0}}, {{0, 0}, {1, -1}}},
    {{{1, 0}, {0, 0}}, {{0, 0}, {1, -1}}, {{0, 1}, {0, 1}}},
    {{{0, 0}, {0, 1}}, {{-1, 1}, {0, 0}}, {{1, 0}, {1, 0}}},
    {{{1, 1}, {0, 0}}, {{0, 0}, {0, 1}}, {{-1, 1}, {0, 0}}},
    {{{-1, 0}, {1, 0}}, {{1, 0}, {1, 0}}, {{0, 0}, {0, 1}}},
    {{{0, 1}, {0, -1}}, {{0, 1}, {0, 1}}, {{1, 0}, {0, 0}}},
};

// A half, in whole vectors or lines, of as many of them as an even number is.
static int strassen_half(int whole, int multiple) {
    return whole / (2 * multiple) * multiple;
}

// --- sums of quarters -----------------------------------------------------------------

struct strassen_sum {
    const float *a, *b; // b: NULL where a is alone
    float a_sign, b_sign;
};

// Of a matrix whose halves are `down` and `right` apart.
static struct strassen_sum strassen_sum(const signed char signs[2][2], const float *at, size_t down,
                                        size_t right) {
    struct strassen_sum sum = {0};
    for (int q = 0; q < 4; q++) {
        const float *quarter = at + (size_t)(q / 2) * down + (size_t)(q % 2) * right;
        float sign = signs[q / 2][q % 2];
        if (sign != 0 && !sum.a)
            sum.a = quarter, sum.a_sign = sign;
        else if (sign != 0)
            sum.b = quarter, sum.b_sign = sign;
    }
    return sum;
}

static struct strassen_sum strassen_weights(int p, const float *weights, int half_units,
                                            int half_inputs, int inputs) {
    return strassen_sum(products[p].w, weights, (size_t)half_units * (size_t)inputs,
                        (size_t)half_inputs);
}

static size_t strassen_kept_size(int n, int units, int inputs) {
    size_t quarter = (size_t)strassen_half(units, LANES) * (size_t)strassen_half(inputs, LINE);
    return strassen_pays(n, units, inputs) ? 5 * quarter : 0;
}

static bool strassen_keep(float *sums, const float *weights, int units, int inputs) {
    int half_units = strassen_half(units, LANES), half_inputs = strassen_half(inputs, LINE);
    for (int p = 0; p < PRODUCTS; p++) {
        struct strassen_sum w = strassen_weights(p, weights, half_units, half_inputs, inputs);
        for (int u = 0; w.b && u < half_units; u++, w.a += inputs, w.b += inputs)
            for (int k = 0; k < half_inputs; k++)
                *sums++ = w.a_sign * w.a[k] + w.b_sign * w.b[k];
    }
    return true;
}

// LANES x LANES numbers of a sum, transposed.
__attribute__((always_inline)) static inline void
strassen_square(float *to, int wide, const struct strassen_sum *sum, size_t at, size_t row) {
    vector v[LANES];
#pragma GCC unroll 16
    for (int j = 0; j < LANES; j++, at += row) {
        v[j] = sum->a_sign * *(const vector *)(sum->a + at);
        if (sum->b)
            v[j] += sum->b_sign * *(const vector *)(sum->b + at);
    }
    transpose_vectors(v);
#pragma GCC unroll 16
    for (int l = 0; l < LANES; l++)
        *(vector *)(to + l * wide) = v[l];
}

// As forward_turn, whole vectors of samples and of inputs.
static void strassen_turn(float *to, const struct strassen_sum *x, size_t inputs, int samples,
                          int depth) {
    for (int at = 0, width; at < samples; at += width) {
        width = panel_vectors((samples - at) / LANES) * LANES;
        for (int j = 0; j < width; j += LANES)
            for (int k = 0; k < depth; k += LANES)
                strassen_square(to + k * width + j, width, x, (size_t)(at + j) * inputs + (size_t)k,
                                inputs);
        to += depth * width;
    }
}

// --- targets of products --------------------------------------------------------------

// A quarter of the outputs, gathered: units x samples, in the order of the tiles.
struct strassen_goal {
    float *gathered;
    float sign;
    bool first; // it holds nothing yet
    bool last;  // transposed to y now
};

struct strassen_goals {
    struct strassen_goal goal[2];
    int count;
};

static size_t strassen_place(const struct forward_block *b, int at, int u) {
    return (size_t)u * (size_t)b->samples + (size_t)at * LANES;
}

static void strassen_gather(const struct strassen_goal *goal, size_t place, const float *sums,
                            int vectors) {
    float *to = goal->gathered + place;
    for (int i = 0; i < LANES * vectors * LANES; i += LANES) {
        vector there = {0};
        if (!goal->first)
            there = *(const vector *)(to + i);
        *(vector *)(to + i) = there + goal->sign * *(const vector *)(sums + i);
    }
}

static void strassen_put(const struct forward_block *b, const float *sums, int vectors, int at,
                         int u, int count) {
    const struct strassen_goals *goals = b->taker;
    size_t place = strassen_place(b, at, u);
    for (int g = 0; g < goals->count; g++) {
        strassen_gather(&goals->goal[g], place, sums, vectors);
        if (goals->goal[g].last)
            forward_put(b, goals->goal[g].gathered + place, vectors, at, u, count);
    }
}

// The first tile for outputs that are due, or the first goal; the second one for the next.
static void strassen_aim(struct forward_ahead *ahead, const struct forward_block *b, int t,
                         int vectors, int at, int u) {
    const struct strassen_goals *goals = b->taker;
    int goal = b->y ? t - 1 : t;
    ahead->lines = 0;
    if (goal < 0) {
        forward_aim(ahead, b, t, vectors, at, u);
    } else if (goal < goals->count) {
        ahead->to = goals->goal[goal].gathered + strassen_place(b, at, u);
        ahead->lines = vectors * LANES * LANES / LINE;
        ahead->step = LINE;
    }
}

// Whether a product from `from` up to `to` goes to quarter q of the outputs.
static bool strassen_goes(int from, int to, int q) {
    bool goes = false;
    for (int p = from; p < to; p++)
        goes |= products[p].y[q / 2][q % 2] != 0;
    return goes;
}

// --- products -------------------------------------------------------------------------

struct strassen {
    struct forward_layer layer;
    const float *sums;          // of weights
    float *gathered;            // outputs of a block
    int samples, units, inputs; // halves
};

// The goals of product p for samples from `at` on in each half, by the first of the inputs
// or the last ones or some between.
static struct strassen_goals strassen_goals(const struct strassen *s, struct forward_block *b,
                                            int p, size_t at, bool first, bool last) {
    const struct forward_layer *l = &s->layer;
    struct strassen_goals goals = {0};
    b->y = NULL;
    for (int q = 0; q < 4; q++) {
        size_t row = at + (size_t)(q / 2 * s->samples), unit = (size_t)(q % 2 * s->units);
        struct strassen_goal goal = {
            .gathered = s->gathered + (size_t)q * (size_t)b->samples * (size_t)s->units,
            .sign = products[p].y[q / 2][q % 2],
            .first = first && !strassen_goes(0, p, q),
            .last = last && !strassen_goes(p + 1, PRODUCTS, q),
        };
        if (goal.sign == 0)
            continue;
        goals.goal[goals.count++] = goal;
        if (goal.last) { // of one quarter at a time, in this order of products
            b->y = l->y + row * (size_t)l->units + unit;
            b->biases = l->biases ? l->biases + unit : NULL;
        }
    }
    return goals;
}

// Product p, by the weights in `whole`, of the samples from `at` on in each half.
static void strassen_multiply(const struct strassen *s, const struct forward_block *whole, int p,
                              size_t at) {
    const struct forward_layer *l = &s->layer;
    size_t inputs = (size_t)l->inputs;
    int lines = s->inputs / LINE, depths = cuts(lines, DENSE_DEPTH / LINE);
    for (int d = 0; d < depths; d++) {
        int from = cut(lines, depths, d) * LINE;
        struct strassen_sum x = strassen_sum(products[p].x, l->x + at * inputs + from,
                                             (size_t)s->samples * inputs, (size_t)s->inputs);
        struct forward_block b = *whole;
        struct strassen_goals goals = strassen_goals(s, &b, p, at, d == 0, d == depths - 1);
        b.depth = cut(lines, depths, d + 1) * LINE - from;
        b.weights += from;
        b.taker = &goals;
        strassen_turn(l->scratch, &x, inputs, b.samples, b.depth);
        forward_units(&b, 0, s->units);
    }
}

// So many samples from `at` on in each half.
static void strassen_block(const struct strassen *s, size_t at, int samples) {
    const struct forward_layer *l = &s->layer;
    struct forward_block b = {.x = l->scratch,
                              .units = l->units,
                              .samples = samples,
                              .first = true,
                              .put = strassen_put,
                              .aim = strassen_aim};
    const float *sums = s->sums;
    for (int p = 0; p < PRODUCTS; p++) {
        struct strassen_sum w = strassen_weights(p, l->weights, s->units, s->inputs, l->inputs);
        b.weights = w.b ? sums : w.a;
        b.inputs = (size_t)(w.b ? s->inputs : l->inputs);
        sums += w.b ? (size_t)s->units * (size_t)s->inputs : 0;
        strassen_multiply(s, &b, p, at);
    }
}

// Computes what the halves leave over, of inputs, units and samples, by panels.
static void strassen_rest(const struct strassen *s) {
    struct forward_layer l = s->layer;
    int n = l.n, samples = 2 * s->samples, units = 2 * s->units, inputs = 2 * s->inputs;
    l.n = samples;
    if (inputs < l.inputs)
        forward_part(&l, &(struct forward_part){0, units, 0, inputs, l.inputs});
    if (units < l.units)
        forward_part(&l, &(struct forward_part){units, l.units, units, 0, l.inputs});
    l.n = n - samples;
    l.x += (size_t)samples * (size_t)l.inputs;
    l.y += (size_t)samples * (size_t)l.units;
    if (l.n > DENSE_STREAM_MOST)
        forward_part(&l, &(struct forward_part){.last = l.units, .to = l.inputs});
    else if (l.n > 0)
        FAMILY(dense_stream)(l.y, l.x, l.weights, l.biases, l.n, l.units, l.inputs, 0);
}

// Whether all samples are finite and, unless zero, of similar magnitude (ALIKE): otherwise small
// ones would lose precision to large ones.
static bool strassen_alike(const float *x, int n, int inputs) {
    float most = 0, least = INFINITY;
    for (int i = 0; i < n; i++, x += inputs) {
        float size = largest(x, (size_t)inputs);
        if (!isfinite(size))
            return false;
        most = fmaxf(most, size);
        least = size > 0 ? fminf(least, size) : least;
    }
    return most <= ALIKE * least;
}

static bool strassen_by_kept(float *y, const float *x, const float *weights, const float *sums,
                             const float *biases, int n, int units, int inputs, float *scratch) {
    if (!strassen_alike(x, n, inputs))
        return false;
    const struct strassen s = {
        .layer = {y, x, weights, biases, n, units, inputs, scratch},
        .sums = sums,
        .gathered = scratch + dense_scratch(n, inputs),
        .samples = strassen_half(n, LANES),
        .units = strassen_half(units, LANES),
        .inputs = strassen_half(inputs, LINE),
    };
    int vectors = s.samples / LANES, blocks = cuts(vectors, DENSE_VECTORS);
    for (int i = 0; i < blocks; i++) {
        int at = cut(vectors, blocks, i);
        strassen_block(&s, (size_t)(at * LANES), (cut(vectors, blocks, i + 1) - at) * LANES);
    }
    strassen_rest(&s);
    return true;
}

const struct dense_kept_kernels FAMILY(strassen) = {
    .size = strassen_kept_size,
    .keep = strassen_keep,
    .forward = strassen_by_kept,
    .way = "strassen",
};

#endif
