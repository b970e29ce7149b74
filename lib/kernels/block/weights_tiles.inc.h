// The tiles of weights_tile.inc.h for all shapes that fit the registers of a family, which compiles
// them apart, beside those of conv_tiles.inc.h.
#ifndef ADAM_KERNELS_BLOCK_WEIGHTS_TILES_INC_H
#define ADAM_KERNELS_BLOCK_WEIGHTS_TILES_INC_H

#include "kernels/block/tile_shapes.inc.h"
#include "kernels/block/weights_tile.inc.h"

#define GRADIENT_TILE(lanes, rows, columns)                                                        \
    static void gradient_##lanes##_##rows##_##columns(const struct gradient_visit *v) {            \
        gradient_tile(lanes, rows, columns, *v);                                                   \
    }
#define GRADIENT_NAME(lanes, rows, columns) gradient_##lanes##_##rows##_##columns,

// Those that fit the registers, as conv_sizes.c knows: their sums, the operand that
// waits, and one more.
#if FAMILY_REGISTERS == 32
#define GRADIENT_SHAPES(D, X, lanes)                                                               \
    D(UP_TO_9(X, lanes, 1))                                                                        \
    D(UP_TO_9(X, lanes, 2)) D(UP_TO_6(X, lanes, 3)) D(UP_TO_6(X, lanes, 4)) D(UP_TO_5(X, lanes, 5))
#else
#define GRADIENT_SHAPES(D, X, lanes)                                                               \
    D(UP_TO_9(X, lanes, 1))                                                                        \
    D(UP_TO_6(X, lanes, 2)) D(UP_TO_4(X, lanes, 3)) D(UP_TO_3(X, lanes, 4)) D(UP_TO_2(X, lanes, 5))
#endif
#define GRADIENT_PLAIN(...) __VA_ARGS__
#define GRADIENT_BRACED(...) {__VA_ARGS__},
#define GRADIENT_TILES(lanes) GRADIENT_SHAPES(GRADIENT_PLAIN, GRADIENT_TILE, lanes)
#define GRADIENT_NAMES(lanes) GRADIENT_SHAPES(GRADIENT_BRACED, GRADIENT_NAME, lanes)

// Defines FAMILY(gradient_tiles_LANES).
#define GRADIENT_TILES_EXPORT(lanes)                                                               \
    GRADIENT_TILES(lanes)                                                                          \
    gradient_shapes FAMILY(gradient_tiles_##lanes) = {GRADIENT_NAMES(lanes)};

#endif
