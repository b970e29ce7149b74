// kernels.gemm for a family with vector registers of FAMILY_LANES floats and
// room for FAMILY_ROWS x 2 of them as accumulators.
//
// A tile of C, rows x (2 vectors), stays in registers over a block of k. B is
// read as a panel of two vectors' width: packed (transposed if need be, padded
// with zeros) so that it stays in the L1 cache while all rows of A pass over it,
// or where it lies when the rows of A fit one tile. A is read where it lies, one
// number at a time, broadcast. "custom hand-tuned [...] kernels that
// appropriately pack and block the data such that the vector units are fully
// utilized for the matrix multiply operations" (Adam 3.2.4).
#ifndef ADAM_KERNELS_PORTABLE_GEMM_INC_H
#define ADAM_KERNELS_PORTABLE_GEMM_INC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/hogwild.h"
#include "kernels/portable/lanes.inc.h"

enum {
    WIDTH = 2 * LANES, // columns of a panel
    DEPTH = 256,       // rows of a panel: 256 x 32 floats, 32 KiB of the L1 cache
};

struct matrix { // element (i, j) is at[i * row + j * column]
    const float *at;
    size_t row, column;
};

struct target { // where a product goes: beta * what is there + alpha * product
    float *at;
    size_t row;
    float alpha, beta;
};

// `rows` rows of one panel, with rows a constant where it is called, so that the
// loops unroll and `sum` lives in registers.
__attribute__((always_inline)) static inline void tile(int rows, struct matrix a, struct matrix b,
                                                       int depth, struct target c) {
    vector sum[ROWS][2] = {0};
    for (int l = 0; l < depth; l++, a.at += a.column, b.at += b.row) {
        vector left = *(const vector *)b.at, right = *(const vector *)(b.at + LANES);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            sum[r][0] += a.at[(size_t)r * a.row] * left;
            sum[r][1] += a.at[(size_t)r * a.row] * right;
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        vector *to = (vector *)(c.at + (size_t)r * c.row);
        if (c.beta == 0) {
            to[0] = c.alpha * sum[r][0];
            to[1] = c.alpha * sum[r][1];
        } else {
            to[0] = c.beta * to[0] + c.alpha * sum[r][0];
            to[1] = c.beta * to[1] + c.alpha * sum[r][1];
        }
    }
}

// The tile function of each number of rows: A may be shared weights.
#define TILE(n)                                                                                    \
    HOGWILD static void tile_##n(struct matrix a, struct matrix b, int depth, struct target c) {   \
        tile(n < ROWS ? n : ROWS, a, b, depth, c);                                                 \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
TILE(13)
TILE(14)
#undef TILE

typedef void tile_function(struct matrix, struct matrix, int, struct target);

static tile_function *const tiles[] = {tile_1, tile_2, tile_3,  tile_4,  tile_5,  tile_6,  tile_7,
                                       tile_8, tile_9, tile_10, tile_11, tile_12, tile_13, tile_14};

// Transposes LANES x LANES numbers from columns of B, each contiguous and `column` apart, to rows
// of the panel, `wide` apart. Columns from `count` on are zeros.
__attribute__((always_inline)) static inline void
transpose_square(float *panel, int wide, const float *from, size_t column, int count) {
    vector v[LANES];
#pragma GCC unroll 16
    for (int j = 0; j < LANES; j++)
        v[j] = j < count ? *(const vector *)(from + (size_t)j * column) : (vector){0};
    transpose_vectors(v);
#pragma GCC unroll 16
    for (int l = 0; l < LANES; l++)
        *(vector *)(panel + l * wide) = v[l];
}

// `count` columns of B to LANES columns of the panel.
HOGWILD static void pack_columns(float *panel, int wide, const float *from, size_t column,
                                 int depth, int count) {
    int l = 0;
    for (; count == LANES && l + LANES <= depth; l += LANES)
        transpose_square(panel + l * wide, wide, from + l, column, LANES);
    for (; l + LANES <= depth; l += LANES)
        transpose_square(panel + l * wide, wide, from + l, column, count);
    for (; l < depth; l++)
        for (int i = 0; i < LANES; i++)
            panel[l * wide + i] = i < count ? from[(size_t)i * column + (size_t)l] : 0;
}

// Columns [0, width) of B, contiguous along `depth`, into the rows of a panel of `wide`
// columns: whole vectors, the rest of which are zeros.
static void pack_transposed(float *panel, int wide, struct matrix b, int depth, int width) {
    for (int j = 0; j < wide; j += LANES) {
        int left = j < width ? width - j : 0;
        const float *from = b.at + (size_t)(left ? j : 0) * b.column;
        pack_columns(panel + j, wide, from, b.column, depth, left < LANES ? left : LANES);
    }
}

// Rows of B as they are, with zeros behind them.
HOGWILD static void pack_rows(float *panel, struct matrix b, int depth, int width) {
    for (int l = 0; l < depth; l++, b.at += b.row, panel += WIDTH) {
        for (int j = 0; j < width; j++)
            panel[j] = b.at[j];
        for (int j = width; j < WIDTH; j++)
            panel[j] = 0;
    }
}

// Where B will be read next: `count` stretches of `length` floats.
struct ahead {
    const float *at;
    size_t step;
    int count, length;
};

// Asks for part t of `parts`, into the L2 cache: no prefetcher follows steps of a whole row, and
// asking for all at once would stall.
static void fetch(const struct ahead *ahead, int t, int parts) {
    int end = (int)((int64_t)ahead->count * (t + 1) / parts);
    for (int i = (int)((int64_t)ahead->count * t / parts); i < end; i++)
        for (int j = 0; j < ahead->length; j += LINE)
            __builtin_prefetch(ahead->at + (size_t)i * ahead->step + j, 0, 2);
}

// All m rows of C against one panel, in tiles of as equal heights as can be. A
// panel that is not full works on a copy of its part of C.
static void panel_product(struct matrix a, struct matrix panel, int m, int depth, int width,
                          struct target c, const struct ahead *ahead) {
    float edge[ROWS * WIDTH];
    int count = (m + ROWS - 1) / ROWS;
    for (int t = 0, i = 0; t < count; t++) {
        int rows = (m - i + count - t - 1) / (count - t);
        struct matrix part = {a.at + (size_t)i * a.row, a.row, a.column};
        struct target to = {c.at + (size_t)i * c.row, c.row, c.alpha, c.beta};
        i += rows;
        fetch(ahead, t, count);
        if (width == WIDTH) {
            tiles[rows - 1](part, panel, depth, to);
            continue;
        }
        tiles[rows - 1](part, panel, depth, (struct target){edge, WIDTH, c.alpha, 0});
        for (int r = 0; r < rows; r++)
            for (int j = 0; j < width; j++) {
                float *at = to.at + (size_t)r * to.row + (size_t)j;
                *at = (c.beta == 0 ? 0 : c.beta * *at) + edge[r * WIDTH + j];
            }
    }
}

// One panel of B, `depth` x `width` from `b` on, against all of A.
static void panel_step(struct matrix a, struct matrix b, int m, int depth, int width,
                       struct target c, const struct ahead *ahead) {
    float packed[DEPTH * WIDTH] __attribute__((aligned(64)));
    if (b.column == 1 && width == WIDTH && m <= ROWS) {
        panel_product(a, b, m, depth, width, c, ahead); // no row is read twice: packing is no gain
        return;
    }
    if (b.column == 1)
        pack_rows(packed, b, depth, width);
    else
        pack_transposed(packed, WIDTH, b, depth, width);
    panel_product(a, (struct matrix){packed, WIDTH, 1}, m, depth, width, c, ahead);
}

static void gemm(bool transpose_a, bool transpose_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc) {
    struct matrix left = {a, transpose_a ? 1 : (size_t)lda, transpose_a ? (size_t)lda : 1};
    struct matrix right = {b, transpose_b ? 1 : (size_t)ldb, transpose_b ? (size_t)ldb : 1};
    for (int l = 0; l < k; l += DEPTH) {
        int depth = k - l < DEPTH ? k - l : DEPTH;
        for (int j = 0; j < n; j += WIDTH) {
            int width = n - j < WIDTH ? n - j : WIDTH;
            struct matrix columns = {left.at + (size_t)l * left.column, left.row, left.column};
            struct matrix rows = {right.at + (size_t)l * right.row + (size_t)j * right.column,
                                  right.row, right.column};
            struct target to = {c + j, (size_t)ldc, alpha, l == 0 ? beta : 1};
            int rest = n - j - width, next = rest < WIDTH ? rest : WIDTH;
            struct ahead ahead = {rows.at + (size_t)width * rows.column, rows.row, depth, next};
            if (rows.column != 1)
                ahead = (struct ahead){ahead.at, rows.column, next, depth};
            panel_step(columns, rows, m, depth, width, to, &ahead);
        }
    }
}

#endif
