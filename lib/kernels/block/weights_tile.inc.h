// The innermost sums of the gradient of the weights: vectors of maps x columns in
// registers, over a rectangle of pixels. A column is a channel at one tap; with
// few channels, columns of neighbouring taps stand side by side.
//
// A vector of error gradients holds LANES / lanes maps of `lanes` samples; the values of a
// column at one pixel are repeated over it by the load. A tile loads rows + columns
// vectors for rows * columns multiply-adds: with 4 x 6 or 5 x 5 loads are not the limit.
#ifndef ADAM_KERNELS_BLOCK_WEIGHTS_TILE_INC_H
#define ADAM_KERNELS_BLOCK_WEIGHTS_TILE_INC_H

#include "kernels/block/repeat.inc.h"
#include "kernels/gradient_sizes.h"

struct gradient_visit {
    const float *errors, *x;                       // of the first pixel
    size_t error_row, error_pixel, x_row, x_pixel; // floats from row to row, pixel to pixel
    int height, width;                             // pixels
    float *sums;                                   // where they go on
    size_t sums_row, sums_column;                  // floats from sum to sum
    bool first;                                    // they begin here
};

__attribute__((always_inline)) static inline vector *gradient_at(const struct gradient_visit *v,
                                                                 int row, int column) {
    return (vector *)(v->sums + (size_t)row * v->sums_row + (size_t)column * v->sums_column);
}

// One pixel.
__attribute__((always_inline)) static inline void
gradient_pixel(int lanes, int rows, int columns, vector *sum, const float *errors, const float *x) {
    vector error[GRADIENT_ROWS];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
        error[r] = *(const vector *)(errors + r * LANES);
#pragma GCC unroll 16
    for (int c = 0; c < columns; c++) {
        vector value = repeat(lanes, x + c * lanes);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++)
            sum[r * columns + c] += error[r] * value;
    }
}

// Multiply-adds take 4 cycles and two begin in each: with fewer than 8 sums, pixels
// take turns at `ways` sets of them.
__attribute__((always_inline)) static inline void gradient_tile(int lanes, int rows, int columns,
                                                                struct gradient_visit v) {
    const int tile = rows * columns, ways = tile >= 8 ? 1 : tile >= 4 ? 2 : 4;
    vector sum[GRADIENT_ROWS * GRADIENT_COLUMNS] = {0};
    if (!v.first)
#pragma GCC unroll 32
        for (int i = 0; i < tile; i++)
            sum[i] = *gradient_at(&v, i / columns, i % columns);
    for (; v.height; v.height--, v.errors += v.error_row, v.x += v.x_row) {
        const float *errors = v.errors, *x = v.x;
        int left = v.width;
        for (; left >= ways; left -= ways)
#pragma GCC unroll 4
            for (int w = 0; w < ways; w++, errors += v.error_pixel, x += v.x_pixel)
                gradient_pixel(lanes, rows, columns, sum + w * tile, errors, x);
        if (ways > 1)
            for (; left; left--, errors += v.error_pixel, x += v.x_pixel)
                gradient_pixel(lanes, rows, columns, sum, errors, x);
    }
#pragma GCC unroll 32
    for (int i = 0; i < tile; i++) {
#pragma GCC unroll 4
        for (int w = 1; w < ways; w++)
            sum[i] += sum[w * tile + i];
        *gradient_at(&v, i / columns, i % columns) = sum[i];
    }
}

typedef void gradient_function(const struct gradient_visit *);
typedef gradient_function *const gradient_shapes[GRADIENT_ROWS][GRADIENT_COLUMNS];

// By rows and columns (weights_tiles.inc.h).
extern gradient_shapes FAMILY(gradient_tiles_1), FAMILY(gradient_tiles_2), FAMILY(gradient_tiles_4);
#if FAMILY_LANES > 4
extern gradient_shapes FAMILY(gradient_tiles_8);
#endif
#if FAMILY_LANES > 8
extern gradient_shapes FAMILY(gradient_tiles_16);
#endif

#endif
