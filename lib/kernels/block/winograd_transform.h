// The transforms of Winograd's minimal filtering (Winograd 1980; Lavin and Gray
// 2016) on vectors: a tile of 4 x 4 outputs of a k x k kernel is a product of
// polynomials, taken at n = 4 + k - 1 points along each side:
//
//   Y = A' [(G g G') * (B' d B)] A
//
// with * element by element. Summed over channels, that * is n x n products of
// matrices. In errors, the adjoint: the gradient of g is G' [(A dY A') * (B' d B)] G.
//
// The points are 0, pairs +-p, and infinity. A and G evaluate polynomials there:
// even and odd powers apart, so that a pair shares its work. With 6 points
// (k = 3) the pairs are 2/3 and 3/2, with 8 (k = 5) 1/2, 1 and 2: of those tried
// the best for rounding. Errors: winograd.h.
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_TRANSFORM_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_TRANSFORM_H

#include "kernels/portable/lanes.h"
#include "kernels/winograd_sizes.h"

enum {
    POINTS_MOST = 8, // points along a side
    PAIRS_MOST = 3,
};

#define ALIGNED __attribute__((aligned(64))) // no vector lies across two cache lines
#define INLINE __attribute__((always_inline)) static inline

// What the transforms multiply by, for q pairs of points. With s the squares of
// the points: the coefficients of the product of all (x - s), and of all but one
// pair's; and the G of that point divided by: the product of its distances to
// the others.
struct points {
    float at[PAIRS_MOST], square[PAIRS_MOST];
    float all[PAIRS_MOST + 1], others[PAIRS_MOST][PAIRS_MOST];
    float scale_zero, scale[PAIRS_MOST];
};

#define P0 (2.0 / 3)
#define P1 (3.0 / 2)
#define S0 (P0 * P0)
#define S1 (P1 * P1)
static const struct points points_6 = {
    .at = {P0, P1},
    .square = {S0, S1},
    .all = {S0 * S1, -(S0 + S1), 1},
    .others = {{-S1, 1}, {-S0, 1}},
    .scale_zero = 1 / (S0 * S1),
    .scale = {1 / (2 * S0 * (S0 - S1)), 1 / (2 * S1 * (S1 - S0))},
};
#undef P0
#undef P1
#undef S0
#undef S1

static const struct points points_8 = {
    .at = {0.5f, 1, 2},
    .square = {0.25f, 1, 4},
    .all = {-1, 5.25f, -5.25f, 1},
    .others = {{4, -5, 1}, {1, -4.25f, 1}, {0.25f, -1.25f, 1}},
    .scale_zero = -1,
    .scale = {1 / 1.40625f, 1 / -4.5f, 1 / 90.f},
};

INLINE const struct points *points_of(int n) {
    return n == 6 ? &points_6 : &points_8;
}

// ---- B': n numbers d at the points. The highest coefficients are 1.
INLINE void at_points(int n, const vector *d, vector *values) {
    const struct points *p = points_of(n);
    vector zero = d[n - 2], infinity = d[n - 1];
#pragma GCC unroll 8
    for (int k = n / 2 - 2; k >= 0; k--) {
        zero += p->all[k] * d[2 * k];
        infinity += p->all[k] * d[2 * k + 1];
    }
    values[0] = zero;
    values[n - 1] = infinity;
#pragma GCC unroll 8
    for (int pair = 0; pair < n / 2 - 1; pair++) {
        vector even = d[n - 2], odd = d[n - 3];
#pragma GCC unroll 8
        for (int k = n / 2 - 3; k >= 0; k--) {
            even += p->others[pair][k] * d[2 * k + 2];
            odd += p->others[pair][k] * d[2 * k + 1];
        }
        values[1 + 2 * pair] = even + p->at[pair] * odd;
        values[2 + 2 * pair] = even - p->at[pair] * odd;
    }
}

// ---- A (count = WINOGRAD_TILE) and G but for its scale (count = k): the values of
// the polynomial with coefficients g.
INLINE void evaluate(int n, int count, const vector *g, vector *values) {
    const struct points *p = points_of(n);
    values[0] = g[0];
    values[n - 1] = g[count - 1];
#pragma GCC unroll 8
    for (int pair = 0; pair < n / 2 - 1; pair++) {
        int even_top = (count - 1) & ~1, odd_top = (count - 2) | 1;
        vector even = g[even_top], odd = g[odd_top];
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

// Its adjoint, A' and G' but for its scale: values times powers of their points.
INLINE void weigh(int n, int count, const vector *values, vector *sums) {
    const struct points *p = points_of(n);
    sums[0] = values[0];
    sums[count - 1] = values[n - 1];
#pragma GCC unroll 8
    for (int pair = 0; pair < n / 2 - 1; pair++) {
        vector even = values[1 + 2 * pair] + values[2 + 2 * pair];
        vector odd = values[1 + 2 * pair] - values[2 + 2 * pair];
        float power = 1;
#pragma GCC unroll 8
        for (int k = 0; k < count; k++, power *= p->at[pair]) {
            vector term = power * (k % 2 ? odd : even);
            if (pair == 0 && k > 0 && k < count - 1)
                sums[k] = term;
            else
                sums[k] += term;
        }
    }
}

// What else is in G.
INLINE void scale(int n, vector *values) {
    const struct points *p = points_of(n);
    values[0] *= p->scale_zero;
#pragma GCC unroll 8
    for (int i = 1; i < n - 1; i++)
        values[i] *= p->scale[(i - 1) / 2];
}

// ---- Both sides: columns first, then rows. `slice` floats lie between the values
// at two points. The loops over columns and over rows stay loops: unrolled, the
// compiler keeps an address for each of n x n vectors.
struct square {
    ALIGNED vector at[POINTS_MOST][POINTS_MOST];
};

// n x n vectors, `row` floats from row to row and `column` from one to the next.
INLINE void transform_data(int n, float *to, size_t slice, const float *from, size_t row,
                           size_t column) {
    struct square line;
    vector d[POINTS_MOST], out[POINTS_MOST];
#pragma GCC unroll 1
    for (int j = 0; j < n; j++, from += column) {
#pragma GCC unroll 8
        for (int i = 0; i < n; i++)
            d[i] = *(const vector *)(from + (size_t)i * row);
        at_points(n, d, out);
#pragma GCC unroll 8
        for (int i = 0; i < n; i++)
            line.at[i][j] = out[i];
    }
#pragma GCC unroll 1
    for (int i = 0; i < n; i++, to += (size_t)n * slice) {
        at_points(n, line.at[i], out);
#pragma GCC unroll 8
        for (int j = 0; j < n; j++)
            *(vector *)(to + (size_t)j * slice) = out[j];
    }
}

// count x count vectors, `step` floats apart, evaluated; scaled if they are kernels.
INLINE void transform_values(int n, int count, bool kernel, float *to, size_t slice,
                             const float *from, size_t step) {
    struct square line;
    vector column[POINTS_MOST], out[POINTS_MOST];
#pragma GCC unroll 1
    for (int j = 0; j < count; j++) {
#pragma GCC unroll 8
        for (int i = 0; i < count; i++)
            column[i] = *(const vector *)(from + (size_t)(i * count + j) * step);
        evaluate(n, count, column, out);
        if (kernel)
            scale(n, out);
#pragma GCC unroll 8
        for (int i = 0; i < n; i++)
            line.at[i][j] = out[i];
    }
#pragma GCC unroll 1
    for (int i = 0; i < n; i++, to += (size_t)n * slice) {
        evaluate(n, count, line.at[i], out);
        if (kernel)
            scale(n, out);
#pragma GCC unroll 8
        for (int j = 0; j < n; j++)
            *(vector *)(to + (size_t)j * slice) = out[j];
    }
}

// Its adjoint: n x n values to count x count sums, column by column, then row by row.
INLINE void column_back(int n, int count, bool kernel, struct square *line, vector *column, int j) {
    vector out[POINTS_MOST];
    if (kernel)
        scale(n, column);
    weigh(n, count, column, out);
#pragma GCC unroll 8
    for (int i = 0; i < count; i++)
        line->at[i][j] = out[i];
}

INLINE void rows_back(int n, int count, bool kernel, vector *to, struct square *line) {
#pragma GCC unroll 1
    for (int i = 0; i < count; i++, to += count) {
        if (kernel)
            scale(n, line->at[i]);
        weigh(n, count, line->at[i], to);
    }
}

INLINE void transform_back(int n, int count, bool kernel, vector *to, const float *from,
                           size_t slice) {
    struct square line;
    vector column[POINTS_MOST];
#pragma GCC unroll 1
    for (int j = 0; j < n; j++, from += slice) {
#pragma GCC unroll 8
        for (int i = 0; i < n; i++)
            column[i] = *(const vector *)(from + (size_t)(i * n) * slice);
        column_back(n, count, kernel, &line, column, j);
    }
    rows_back(n, count, kernel, to, &line);
}

#endif
