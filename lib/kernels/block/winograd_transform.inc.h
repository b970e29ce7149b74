// Transforms of both sides of a tile, to the points and back (winograd_points.inc.h): columns
// first, then rows. `slice` floats lie between the values at two pairs of points. The loops over
// columns and rows are not unrolled: the compiler would keep an address for each of n x n vectors.
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_TRANSFORM_INC_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_TRANSFORM_INC_H

#include "kernels/block/winograd_points.inc.h"

struct square {
    ALIGNED vector at[POINTS_MOST][POINTS_MOST];
};

// ---- Data: a square of vectors, `row` floats from row to row and `column` from one to the next.
INLINE void data_columns(struct side s, struct square *line, const float *from, size_t row,
                         size_t column, int count) {
    vector d[POINTS_MOST], out[POINTS_MOST];
    int n = side_points(s);
#pragma GCC unroll 1
    for (int j = 0; j < count; j++, from += column) {
#pragma GCC unroll 8
        for (int i = 0; i < n; i++)
            d[i] = *(const vector *)(from + (size_t)i * row);
        at_points(s, d, out);
#pragma GCC unroll 8
        for (int i = 0; i < n; i++)
            line->at[i][j] = out[i];
    }
}

// The part of a square that lies inside the picture; elsewhere it is 0.
struct inside {
    int top, bottom, left, right; // rows from top on, before bottom; likewise columns
};

// `from` is the first vector inside.
INLINE void edge_columns(struct side s, struct square *line, const float *from, size_t row,
                         size_t column, int count, const struct inside *inside) {
    vector d[POINTS_MOST], out[POINTS_MOST], zero = {0};
    int n = side_points(s);
#pragma GCC unroll 1
    for (int j = 0; j < count; j++) {
        if (j < inside->left || j >= inside->right) {
#pragma GCC unroll 8
            for (int i = 0; i < n; i++)
                line->at[i][j] = zero;
            continue;
        }
        const float *at = from;
        from += column;
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) {
            d[i] = zero;
            if (i >= inside->top && i < inside->bottom) {
                d[i] = *(const vector *)at;
                at += row;
            }
        }
        at_points(s, d, out);
#pragma GCC unroll 8
        for (int i = 0; i < n; i++)
            line->at[i][j] = out[i];
    }
}

INLINE void data_rows(struct side s, float *to, size_t slice, const struct square *line,
                      int count) {
    vector out[POINTS_MOST];
    int n = side_points(s);
#pragma GCC unroll 1
    for (int i = 0; i < count; i++, to += (size_t)n * slice) {
        at_points(s, line->at[i], out);
#pragma GCC unroll 8
        for (int j = 0; j < n; j++)
            *(vector *)(to + (size_t)j * slice) = out[j];
    }
}

// ---- Kernels and error gradients: `taps` x ... vectors evaluated; scaled if they are kernels.
INLINE void value_columns(struct side s, int taps, bool kernel, struct square *line,
                          const float *from, size_t row, size_t column, int count) {
    vector taken[POINTS_MOST], out[POINTS_MOST];
    int n = side_points(s);
#pragma GCC unroll 1
    for (int j = 0; j < count; j++, from += column) {
#pragma GCC unroll 8
        for (int i = 0; i < taps; i++)
            taken[i] = *(const vector *)(from + (size_t)i * row);
        evaluate(s, taps, taken, out);
        if (kernel)
            scale(s, out);
#pragma GCC unroll 8
        for (int i = 0; i < n; i++)
            line->at[i][j] = out[i];
    }
}

INLINE void value_rows(struct side s, int taps, bool kernel, float *to, size_t slice,
                       const struct square *line, int count) {
    vector out[POINTS_MOST];
    int n = side_points(s);
#pragma GCC unroll 1
    for (int i = 0; i < count; i++, to += (size_t)n * slice) {
        evaluate(s, taps, line->at[i], out);
        if (kernel)
            scale(s, out);
#pragma GCC unroll 8
        for (int j = 0; j < n; j++)
            *(vector *)(to + (size_t)j * slice) = out[j];
    }
}

// ---- Their adjoint: from values at the points to `taps` x ... sums, columns first.
INLINE void column_back(struct side s, int taps, bool kernel, struct square *line, vector *column,
                        int j) {
    vector out[POINTS_MOST];
    if (kernel)
        scale(s, column);
    weigh(s, taps, column, out);
#pragma GCC unroll 8
    for (int i = 0; i < taps; i++)
        line->at[i][j] = out[i];
}

// Of `count` columns; `row` floats lie between the values of two rows.
INLINE void back_columns(struct side s, int taps, bool kernel, struct square *line,
                         const float *from, size_t row, size_t slice, int count) {
    vector column[POINTS_MOST];
    int n = side_points(s);
#pragma GCC unroll 1
    for (int j = 0; j < count; j++, from += slice) {
#pragma GCC unroll 8
        for (int i = 0; i < n; i++)
            column[i] = *(const vector *)(from + (size_t)i * row);
        column_back(s, taps, kernel, line, column, j);
    }
}

// Rows of `step` vectors.
INLINE void back_rows(struct side s, int taps, bool kernel, vector *to, int step,
                      struct square *line, int count) {
#pragma GCC unroll 1
    for (int i = 0; i < count; i++, to += step) {
        if (kernel)
            scale(s, line->at[i]);
        weigh(s, taps, line->at[i], to);
    }
}

// ---- The sides of tiles, which may differ: a function each, for any number of columns or rows.
struct side_functions {
    void (*data_columns)(struct square *, const float *from, size_t row, size_t column, int count);
    void (*edge_columns)(struct square *, const float *from, size_t row, size_t column, int count,
                         const struct inside *);
    void (*data_rows)(float *to, size_t slice, const struct square *, int count);
    // Outputs, as rows of WINOGRAD_TILE vectors, and error gradients, which are as outputs are.
    void (*output_columns)(struct square *, const float *from, size_t row, size_t slice, int count);
    void (*output_rows)(vector *to, struct square *, int count);
    void (*error_columns)(struct square *, const float *from, size_t row, size_t column, int count);
    void (*error_rows)(float *to, size_t slice, const struct square *, int count);
};

// By the taps of a kernel's side, 3 or 5, and by outputs, less one.
extern const struct side_functions FAMILY(sides)[2][WINOGRAD_TILE];

// Of whole tiles of kernels of 3 taps, both sides in one go (winograd_square.inc.h). Squares of
// kernels of 5 do not fit the registers.
struct square_functions {
    void (*data)(float *to, size_t slice, const float *from, size_t row, size_t column);
    void (*edge)(float *to, size_t slice, const float *from, size_t row, size_t column,
                 const struct inside *);
    void (*errors)(float *to, size_t slice, const float *from);
};

extern const struct square_functions FAMILY(squares);

// ---- Asks for the lines of a square of vectors that is transformed soon: lines of a channel lie
// far apart, so no prefetcher follows them. Reads go to the L2 cache only: pixels are often a
// multiple of 4 KB apart, in one set of the L1 cache.
enum { AHEAD = 2 * LANES }; // floats: two channels on, the time that a line takes to come

INLINE void ask_to_read(int rows, int columns, const float *at, size_t row, size_t column) {
#pragma GCC unroll 1
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            __builtin_prefetch(at + (size_t)i * row + (size_t)j * column, 0, 2);
}

INLINE void ask_to_write(int rows, int columns, const float *at, size_t row, size_t column) {
#pragma GCC unroll 1
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            __builtin_prefetch(at + (size_t)i * row + (size_t)j * column, 1);
}

#endif
