// Products of tiles at one pair of points (winograd.inc.h): rows x columns vectors of sums, over
// outer x inner terms, of broadcast numbers a times vectors b.
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_PRODUCTS_INC_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_PRODUCTS_INC_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/block/winograd_points.inc.h"

enum {
    PRODUCT_ROWS = LANES / 2,           // broadcast numbers
    PRODUCT_COLUMNS = WINOGRAD_COLUMNS, // vectors: 24 or 12 sums fit the registers
};

struct slice_product {
    const float *a, *b;
    size_t a_skip, b_column;
    int outer, inner;
    float *to;
    size_t to_column;
    bool add;
    const float *next; // the next numbers, to ask for
};

// Meanwhile asks for what comes from memory: the next `numbers`, or the sums of the next rows.
INLINE void product_tile(int rows, int columns, size_t a_row, size_t a_step, int inner,
                         bool numbers, const struct slice_product *p) {
    vector sum[PRODUCT_ROWS][PRODUCT_COLUMNS];
#pragma GCC unroll 3
    for (int j = 0; j < columns; j++) {
        const float *to = p->to + (size_t)j * p->to_column;
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            sum[r][j] = p->add ? *(const vector *)(to + r * LANES) : (vector){0};
    }
    if (!numbers)
#pragma GCC unroll 3
        for (int j = 0; j < columns; j++)
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++)
                __builtin_prefetch(p->to + (size_t)j * p->to_column + (rows + r) * LANES, 1);
    const float *a = p->a, *b = p->b, *next = p->next;
    size_t a_skip = p->a_skip, b_column = p->b_column;
    for (int o = p->outer; o > 0; o--, a += a_skip)
        for (int l = 0; l < inner; l++, b += LANES) {
            vector right[PRODUCT_COLUMNS];
            if (numbers)
                __builtin_prefetch(next + (size_t)l * a_step);
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
            *(vector *)(to + r * LANES) = sum[r][j];
    }
}

typedef void product_function(const struct slice_product *);

// Maps x tiles: kernels are broadcast, summed over channels. Channels x bundles of
// maps: data are broadcast, summed over tiles and their lanes.
#define PRODUCT(rows, columns)                                                                     \
    static void product_maps_##rows##columns(const struct slice_product *p) {                      \
        product_tile(rows < PRODUCT_ROWS ? rows : PRODUCT_ROWS, columns, 1, LANES, p->inner, true, \
                     p);                                                                           \
    }                                                                                              \
    static void product_channels_##rows##columns(const struct slice_product *p) {                  \
        product_tile(rows < PRODUCT_ROWS ? rows : PRODUCT_ROWS, columns, LANES, 1, LANES, false,   \
                     p);                                                                           \
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
static product_function *const products_maps[PRODUCT_COLUMNS][8] = {
    ROW(product_maps, 1), ROW(product_maps, 2), ROW(product_maps, 3)};
static product_function *const products_channels[PRODUCT_COLUMNS][8] = {
    ROW(product_channels, 1), ROW(product_channels, 2), ROW(product_channels, 3)};
#undef ROW

#endif
