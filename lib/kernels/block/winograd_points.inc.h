// The transforms of Winograd's minimal filtering (Winograd 1980; Lavin and Gray 2016) along
// one side of a tile, on vectors: r outputs of a kernel of k taps are a product of
// polynomials, taken at n = r + k - 1 points. Of a tile, which has two sides:
//
//   Y = A' [(G g G') * (B' d B)] A
//
// with * element by element. Summed over channels, that * is n x n products of
// matrices. In error gradients, the adjoint: the gradient of g is G' [(A dY A') * (B' d B)] G.
//
// The points are 0, pairs +-p, and infinity. A and G evaluate polynomials there:
// even and odd powers apart, so that a pair shares its work. A side of 4 outputs has
// the pairs 2/3 and 3/2 for k = 3, and 1/2, 2 and 1 for k = 5, which round least
// (winograd.inc.h).
//
// Where a picture ends with a tile of 1, 2 or 3 outputs, its side has 3, 2 or 1 points fewer: an
// odd number omits infinity, two or three fewer omit the last pair. The points are a subset of the
// whole side's, so all tiles are multiplied by the same kernels. G divides by the distances of a
// point to all others; B' multiplies by the distances to unused points (`lift`).
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_POINTS_INC_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_POINTS_INC_H

#include <stdbool.h>

#include "kernels/portable/lanes.inc.h"
#include "kernels/winograd_tile.h"

enum {
    POINTS_MOST = 8, // along a side
    PAIRS_MOST = 3,
};

#define ALIGNED __attribute__((aligned(64))) // no vector lies across two cache lines
#define INLINE __attribute__((always_inline)) static inline

// Constants of the transforms, for some pairs of points. With s the squares of the points: the
// coefficients of the product of all (x - s) (`all`) and of all but one pair's (`others`); one
// over the product of a point's distances to all others (`scale`); the product of its distances
// to unused points (`lift`).
struct points {
    float at[PAIRS_MOST], square[PAIRS_MOST];
    float all[PAIRS_MOST + 1], others[PAIRS_MOST][PAIRS_MOST];
    float scale_zero, scale[PAIRS_MOST];
    float lift_zero, lift[PAIRS_MOST];
};

#define P0 (2.0 / 3)
#define P1 (3.0 / 2)
#define S0 (P0 * P0)
#define S1 (P1 * P1)
static const struct points points_of_3 = {
    .at = {P0, P1},
    .square = {S0, S1},
    .all = {S0 * S1, -(S0 + S1), 1},
    .others = {{-S1, 1}, {-S0, 1}},
    .scale_zero = 1 / (S0 * S1),
    .scale = {1 / (2 * S0 * (S0 - S1)), 1 / (2 * S1 * (S1 - S0))},
    .lift_zero = 1,
    .lift = {1, 1},
};

static const struct points points_of_3_but_a_pair = {
    .at = {P0},
    .square = {S0},
    .all = {-S0, 1},
    .others = {{1}},
    .lift_zero = -S1,
    .lift = {S0 - S1},
};
#undef P0
#undef P1
#undef S0
#undef S1

static const struct points points_of_5 = {
    .at = {0.5f, 2, 1},
    .square = {0.25f, 4, 1},
    .all = {-1, 5.25f, -5.25f, 1},
    .others = {{4, -5, 1}, {0.25f, -1.25f, 1}, {1, -4.25f, 1}},
    .scale_zero = -1,
    .scale = {1 / 1.40625f, 1 / 90.f, 1 / -4.5f},
    .lift_zero = 1,
    .lift = {1, 1, 1},
};

static const struct points points_of_5_but_a_pair = {
    .at = {0.5f, 2},
    .square = {0.25f, 4},
    .all = {1, -4.25f, 1},
    .others = {{-4, 1}, {-0.25f, 1}},
    .lift_zero = -1,
    .lift = {-0.75f, 3},
};

// A side of a tile of `outputs` outputs.
struct side {
    const struct points *points;
    int outputs, pairs;
    bool infinity;
};

// Compile-time constants if k and outputs are.
INLINE struct side side_of(int k, int outputs) {
    bool whole = outputs > WINOGRAD_TILE - 2;
    const struct points *points = k == 3  ? whole ? &points_of_3 : &points_of_3_but_a_pair
                                  : whole ? &points_of_5
                                          : &points_of_5_but_a_pair;
    return (struct side){points, outputs, k / 2 + (whole ? 1 : 0), outputs % 2 == 0};
}

INLINE int side_points(struct side s) {
    return 1 + 2 * s.pairs + (s.infinity ? 1 : 0);
}

// ---- B': data to the points, as many numbers d as points. The highest coefficients are 1, except
// for the lift.
INLINE vector at_zero(struct side s, const vector *d) {
    vector zero = d[2 * s.pairs];
#pragma GCC unroll 8
    for (int k = s.pairs - 1; k >= 0; k--)
        zero += s.points->all[k] * d[2 * k];
    return zero * s.points->lift_zero;
}

INLINE vector at_infinity(struct side s, const vector *d) {
    vector infinity = d[2 * s.pairs + 1];
#pragma GCC unroll 8
    for (int k = s.pairs - 1; k >= 0; k--)
        infinity += s.points->all[k] * d[2 * k + 1];
    return infinity;
}

INLINE void at_pair(struct side s, int pair, const vector *d, vector *plus, vector *minus) {
    const struct points *p = s.points;
    vector even = d[2 * s.pairs], odd = d[2 * s.pairs - 1];
#pragma GCC unroll 8
    for (int k = s.pairs - 2; k >= 0; k--) {
        even += p->others[pair][k] * d[2 * k + 2];
        odd += p->others[pair][k] * d[2 * k + 1];
    }
    even *= p->lift[pair];
    odd *= p->lift[pair];
    *plus = even + p->at[pair] * odd;
    *minus = even - p->at[pair] * odd;
}

INLINE void at_points(struct side s, const vector *d, vector *values) {
    values[0] = at_zero(s, d);
#pragma GCC unroll 8
    for (int pair = 0; pair < s.pairs; pair++)
        at_pair(s, pair, d, &values[1 + 2 * pair], &values[2 + 2 * pair]);
    if (s.infinity)
        values[2 * s.pairs + 1] = at_infinity(s, d);
}

// ---- A (count = outputs) and G without its scale (count = k): evaluates the polynomial with
// coefficients g at the points.
INLINE void evaluate(struct side s, int count, const vector *g, vector *values) {
    const struct points *p = s.points;
    int even_top = (count - 1) & ~1, odd_top = (count - 2) | 1;
    values[0] = g[0];
    if (s.infinity)
        values[1 + 2 * s.pairs] = g[count - 1];
#pragma GCC unroll 8
    for (int pair = 0; pair < s.pairs; pair++) {
        vector even = g[even_top], odd = count > 1 ? g[odd_top] : (vector){0};
#pragma GCC unroll 8
        for (int k = even_top - 2; k >= 0; k -= 2)
            even = p->square[pair] * even + g[k];
#pragma GCC unroll 8
        for (int k = odd_top - 2; k >= 1; k -= 2)
            odd = p->square[pair] * odd + g[k];
        values[1 + 2 * pair] = even + p->at[pair] * odd;
        values[2 + 2 * pair] = even - p->at[pair] * odd;
    }
}

// Its adjoint, A' and G' without its scale: sums of values times powers of their points.
INLINE void weigh(struct side s, int count, const vector *values, vector *sums) {
    const struct points *p = s.points;
    sums[0] = values[0];
    if (s.infinity)
        sums[count - 1] = values[1 + 2 * s.pairs];
#pragma GCC unroll 8
    for (int pair = 0; pair < s.pairs; pair++) {
        vector even = values[1 + 2 * pair] + values[2 + 2 * pair];
        vector odd = values[1 + 2 * pair] - values[2 + 2 * pair];
        float power = 1;
#pragma GCC unroll 8
        for (int k = 0; k < count; k++, power *= p->at[pair]) {
            vector term = power * (k % 2 ? odd : even);
            if (pair == 0 && k > 0 && !(s.infinity && k == count - 1))
                sums[k] = term;
            else
                sums[k] += term;
        }
    }
}

// The scale of G.
INLINE void scale(struct side s, vector *values) {
    const struct points *p = s.points;
    values[0] *= p->scale_zero;
#pragma GCC unroll 8
    for (int i = 0; i < 2 * s.pairs; i++)
        values[1 + i] *= p->scale[i / 2];
}

#endif
