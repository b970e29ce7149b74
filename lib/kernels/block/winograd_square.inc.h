// Transforms of whole tiles (winograd_transform.inc.h) in one go: both of their sides are of
// WINOGRAD_TILE outputs, so loops over columns and rows are unrolled, and what the columns give
// stays in registers for the rows.
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_SQUARE_INC_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_SQUARE_INC_H

#include "kernels/block/run.inc.h"
#include "kernels/block/winograd_transform.inc.h"

// ---- Data.

// A column of n vectors, with zeros outside of `in`, which may be NULL. `from` is the first inside.
INLINE void load_column(vector *d, int n, const float *from, size_t row, const struct inside *in) {
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        d[i] = (vector){0};
        if (in && (i < in->top || i >= in->bottom))
            continue;
        d[i] = *(const vector *)from;
        from += row;
    }
}

// A row of values at n points.
INLINE void store_values(float *to, size_t slice, const vector *values, int n) {
    to = apart_to(to);
#pragma GCC unroll 8
    for (int j = 0; j < n; j++)
        *(vector *)(to + (size_t)j * slice) = values[j];
}

INLINE void store_at_points(struct side s, float *to, size_t slice, const vector *line) {
    vector out[POINTS_MOST];
    at_points(s, line, out);
    store_values(to, slice, out, side_points(s));
}

// The rows of a pair of points at a time, and those of 0 and of infinity with the first and with
// the last pair, so that they fit the registers. `from` as in load_column().
INLINE void data_square(struct side s, float *to, size_t slice, const float *from, size_t row,
                        size_t column, const struct inside *in) {
    int n = side_points(s);
    size_t line = (size_t)n * slice;
#pragma GCC unroll 3
    for (int pair = 0; pair < s.pairs; pair++) {
        vector zero[POINTS_MOST], plus[POINTS_MOST], minus[POINTS_MOST], infinity[POINTS_MOST];
        bool first = pair == 0, last = pair == s.pairs - 1;
        const float *at = from;
#pragma GCC unroll 8
        for (int j = 0; j < n; j++) {
            vector d[POINTS_MOST];
            zero[j] = plus[j] = minus[j] = infinity[j] = (vector){0};
            if (in && (j < in->left || j >= in->right))
                continue;
            load_column(d, n, apart(at), row, in);
            at += column;
            if (first)
                zero[j] = at_zero(s, d);
            at_pair(s, pair, d, &plus[j], &minus[j]);
            if (last)
                infinity[j] = at_infinity(s, d);
        }
        if (first)
            store_at_points(s, to, slice, zero);
        store_at_points(s, to + (size_t)(1 + 2 * pair) * line, slice, plus);
        store_at_points(s, to + (size_t)(2 + 2 * pair) * line, slice, minus);
        if (last)
            store_at_points(s, to + (size_t)(n - 1) * line, slice, infinity);
    }
}

// ---- Error gradients: WINOGRAD_TILE x WINOGRAD_TILE vectors, one behind the other.
INLINE void error_square(struct side s, float *to, size_t slice, const float *from) {
    int n = side_points(s);
    vector line[POINTS_MOST][WINOGRAD_TILE], out[POINTS_MOST];
#pragma GCC unroll 4
    for (int j = 0; j < WINOGRAD_TILE; j++) {
        vector d[WINOGRAD_TILE];
        load_column(d, WINOGRAD_TILE, from + j * LANES, WINOGRAD_TILE * LANES, NULL);
        evaluate(s, WINOGRAD_TILE, d, out);
#pragma GCC unroll 8
        for (int i = 0; i < n; i++)
            line[i][j] = out[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        evaluate(s, WINOGRAD_TILE, line[i], out);
        store_values(to + (size_t)(i * n) * slice, slice, out, n);
    }
}

// ---- Outputs: the columns of the products. Asks for those of the next map, which lie LANES on:
// there are more lines than a prefetcher follows.
INLINE void product_square(struct side s, vector line[][POINTS_MOST], const float *from,
                           size_t slice) {
    int n = side_points(s);
#pragma GCC unroll 8
    for (int j = 0; j < n; j++) {
        vector column[POINTS_MOST], out[WINOGRAD_TILE];
        const float *at = apart(from + (size_t)j * slice);
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) {
            column[i] = *(const vector *)(at + (size_t)(i * n) * slice);
            __builtin_prefetch(at + LANES + (size_t)(i * n) * slice);
        }
        weigh(s, WINOGRAD_TILE, column, out);
#pragma GCC unroll 4
        for (int i = 0; i < WINOGRAD_TILE; i++)
            line[i][j] = out[i];
    }
}

#endif
