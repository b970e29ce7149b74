// The functions of Winograd's minimal filtering (winograd.inc.h) for each size of tile, which its
// passes call by tables: products at a pair of points, and transforms along a side.
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_FUNCTIONS_INC_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_FUNCTIONS_INC_H

#include "kernels/block/winograd_products.inc.h"
#include "kernels/block/winograd_square.inc.h"

// ---- Products

enum asked { ASK_NUMBERS, ASK_SUMS, ASK_VECTORS };

// Meanwhile asks for what comes from memory: the next numbers, or the sums of the next rows, with
// the next vectors or without.
INLINE void product_tile(int rows, int columns, size_t a_row, size_t a_step, size_t to_row,
                         int inner, enum asked asked, const struct slice_product *p) {
    vector sum[PRODUCT_ROWS][PRODUCT_COLUMNS];
#pragma GCC unroll 3
    for (int j = 0; j < columns; j++) {
        const float *to = p->to + (size_t)j * p->to_column;
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            sum[r][j] = p->add ? *(const vector *)(to + (size_t)r * to_row) : (vector){0};
    }
    if (asked != ASK_NUMBERS)
#pragma GCC unroll 3
        for (int j = 0; j < columns; j++)
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++)
                __builtin_prefetch(p->to + (size_t)j * p->to_column + (size_t)(rows + r) * to_row,
                                   1);
    const float *a = p->a, *b = p->b, *next = p->next;
    size_t a_skip = p->a_skip, b_column = p->b_column;
    for (int o = p->outer; o > 0; o--, a += a_skip)
        for (int l = 0; l < inner; l++, b += LANES) {
            vector right[PRODUCT_COLUMNS];
            if (asked == ASK_NUMBERS)
                __builtin_prefetch(next + (size_t)l * a_step);
            if (asked == ASK_VECTORS)
#pragma GCC unroll 3
                for (int j = 0; j < columns; j++)
                    __builtin_prefetch(next + (size_t)j * b_column + l * LANES, 0, 2);
#pragma GCC unroll 3
            for (int j = 0; j < columns; j++)
                right[j] = *(const vector *)(b + (size_t)j * b_column);
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
                for (int j = 0; j < columns; j++)
                    sum[r][j] += a[(size_t)r * a_row + (size_t)l * a_step] * right[j];
        }
#pragma GCC unroll 3
    for (int j = 0; j < columns; j++) {
        float *to = p->to + (size_t)j * p->to_column;
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            *(vector *)(to + (size_t)r * to_row) = sum[r][j];
    }
}

#define PRODUCT(rows, columns)                                                                     \
    static void product_maps_##rows##columns(const struct slice_product *p) {                      \
        product_tile(rows < PRODUCT_ROWS ? rows : PRODUCT_ROWS, columns, 1, LANES, LANES,          \
                     p->inner, ASK_NUMBERS, p);                                                    \
    }                                                                                              \
    static void product_channels_##rows##columns(const struct slice_product *p) {                  \
        product_tile(rows < PRODUCT_ROWS ? rows : PRODUCT_ROWS, columns, LANES, 1, LANES, LANES,   \
                     ASK_SUMS, p);                                                                 \
    }                                                                                              \
    static void product_tiles_##rows##columns(const struct slice_product *p) {                     \
        product_tile(rows < PRODUCT_ROWS ? rows : PRODUCT_ROWS, columns, p->a_row, 1, p->to_row,   \
                     p->inner, ASK_SUMS, p);                                                       \
    }                                                                                              \
    static void product_ahead_##rows##columns(const struct slice_product *p) {                     \
        product_tile(rows < PRODUCT_ROWS ? rows : PRODUCT_ROWS, columns, p->a_row, 1, p->to_row,   \
                     p->inner, ASK_VECTORS, p);                                                    \
    }                                                                                              \
    static void product_sums_##rows##columns(const struct slice_product *p) {                      \
        product_tile(rows < PRODUCT_ROWS ? rows : PRODUCT_ROWS, columns, 1, p->a_step, LANES,      \
                     p->inner, ASK_SUMS, p);                                                       \
    }
#define PRODUCTS(columns)                                                                          \
    PRODUCT(1, columns)                                                                            \
    PRODUCT(2, columns)                                                                            \
    PRODUCT(3, columns)                                                                            \
    PRODUCT(4, columns)                                                                            \
    PRODUCT(5, columns)                                                                            \
    PRODUCT(6, columns)                                                                            \
    PRODUCT(7, columns)                                                                            \
    PRODUCT(8, columns)
PRODUCTS(1)
PRODUCTS(2)
PRODUCTS(3)
#undef PRODUCTS
#undef PRODUCT

#define ROW(of, columns)                                                                           \
    {                                                                                              \
        of##_1##columns, of##_2##columns, of##_3##columns, of##_4##columns, of##_5##columns,       \
            of##_6##columns, of##_7##columns, of##_8##columns                                      \
    }
product_function *const FAMILY(products_maps)[PRODUCT_COLUMNS][8] = {
    ROW(product_maps, 1), ROW(product_maps, 2), ROW(product_maps, 3)};
product_function *const FAMILY(products_channels)[PRODUCT_COLUMNS][8] = {
    ROW(product_channels, 1), ROW(product_channels, 2), ROW(product_channels, 3)};
product_function *const FAMILY(products_tiles)[PRODUCT_COLUMNS][8] = {
    ROW(product_tiles, 1), ROW(product_tiles, 2), ROW(product_tiles, 3)};
product_function *const FAMILY(products_ahead)[PRODUCT_COLUMNS][8] = {
    ROW(product_ahead, 1), ROW(product_ahead, 2), ROW(product_ahead, 3)};
product_function *const FAMILY(products_sums)[PRODUCT_COLUMNS][8] = {
    ROW(product_sums, 1), ROW(product_sums, 2), ROW(product_sums, 3)};
#undef ROW

// ---- Transforms

#define SIDE(k, outputs)                                                                           \
    static void data_columns_##k##outputs(struct square *line, const float *from, size_t row,      \
                                          size_t column, int count) {                              \
        data_columns(side_of(k, outputs), line, from, row, column, count);                         \
    }                                                                                              \
    static void edge_columns_##k##outputs(struct square *line, const float *from, size_t row,      \
                                          size_t column, int count, const struct inside *inside) { \
        edge_columns(side_of(k, outputs), line, from, row, column, count, inside);                 \
    }                                                                                              \
    static void data_rows_##k##outputs(float *to, size_t slice, const struct square *line,         \
                                       int count) {                                                \
        data_rows(side_of(k, outputs), to, slice, line, count);                                    \
    }                                                                                              \
    static void output_columns_##k##outputs(struct square *line, const float *from, size_t row,    \
                                            size_t slice, int count) {                             \
        back_columns(side_of(k, outputs), outputs, false, line, from, row, slice, count);          \
    }                                                                                              \
    static void output_rows_##k##outputs(vector *to, struct square *line, int count) {             \
        back_rows(side_of(k, outputs), outputs, false, to, WINOGRAD_TILE, line, count);            \
    }                                                                                              \
    static void error_columns_##k##outputs(struct square *line, const float *from, size_t row,     \
                                           size_t column, int count) {                             \
        value_columns(side_of(k, outputs), outputs, false, line, from, row, column, count);        \
    }                                                                                              \
    static void error_rows_##k##outputs(float *to, size_t slice, const struct square *line,        \
                                        int count) {                                               \
        value_rows(side_of(k, outputs), outputs, false, to, slice, line, count);                   \
    }
SIDE(3, 1)
SIDE(3, 2)
SIDE(3, 3)
SIDE(3, 4)
SIDE(5, 1)
SIDE(5, 2)
SIDE(5, 3)
SIDE(5, 4)
#undef SIDE

#define SIDE(k, outputs)                                                                           \
    {                                                                                              \
        data_columns_##k##outputs, edge_columns_##k##outputs, data_rows_##k##outputs,              \
            output_columns_##k##outputs, output_rows_##k##outputs, error_columns_##k##outputs,     \
            error_rows_##k##outputs                                                                \
    }
const struct side_functions FAMILY(sides)[2][WINOGRAD_TILE] = {
    {SIDE(3, 1), SIDE(3, 2), SIDE(3, 3), SIDE(3, 4)},
    {SIDE(5, 1), SIDE(5, 2), SIDE(5, 3), SIDE(5, 4)},
};
#undef SIDE

// ---- Transforms of whole tiles

static void square_data(float *to, size_t slice, const float *from, size_t row, size_t column) {
    data_square(side_of(3, WINOGRAD_TILE), to, slice, from, row, column, NULL);
}

static void square_edge(float *to, size_t slice, const float *from, size_t row, size_t column,
                        const struct inside *in) {
    data_square(side_of(3, WINOGRAD_TILE), to, slice, from, row, column, in);
}

static void square_errors(float *to, size_t slice, const float *from) {
    error_square(side_of(3, WINOGRAD_TILE), to, slice, from);
}

const struct square_functions FAMILY(squares) = {
    .data = square_data, .edge = square_edge, .errors = square_errors};

#endif
