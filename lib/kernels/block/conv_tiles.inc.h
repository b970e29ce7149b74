// The tiles of conv_tile.inc.h for all shapes that fit the registers of a family. They are most of
// what the compiler has to do for convolutions of blocks, so that a family compiles them apart,
// those of as many lanes a file.
#ifndef ADAM_KERNELS_BLOCK_CONV_TILES_INC_H
#define ADAM_KERNELS_BLOCK_CONV_TILES_INC_H

#include "kernels/block/conv_tile.inc.h"
#include "kernels/block/tile_shapes.inc.h"

#define CONV_TILE(lanes, rows, pixels)                                                             \
    static void conv_tile_##lanes##_##rows##_##pixels(const struct conv_taps *taps,                \
                                                      const struct conv_pixel *pixel,              \
                                                      const struct conv_maps *maps) {              \
        conv_tile(lanes, rows, pixels, taps, pixel, maps);                                         \
    }
#define CONV_NAME(lanes, rows, pixels) conv_tile_##lanes##_##rows##_##pixels,

// As many rows as conv_rows_most() says.
#define CONV_TILES(lanes)                                                                          \
    WITH_1_ROW(CONV_TILE, lanes)                                                                   \
    WITH_2_ROWS(CONV_TILE, lanes)                                                                  \
    WITH_3_ROWS(CONV_TILE, lanes)                                                                  \
    WITH_4_ROWS(CONV_TILE, lanes)
#define CONV_NAMES(lanes)                                                                          \
    {WITH_1_ROW(CONV_NAME, lanes)}, {WITH_2_ROWS(CONV_NAME, lanes)},                               \
        {WITH_3_ROWS(CONV_NAME, lanes)}, {                                                         \
        WITH_4_ROWS(CONV_NAME, lanes)                                                              \
    }

#if FAMILY_REGISTERS == 32
#define CONV_TILES_MORE_ROWS(lanes)                                                                \
    WITH_5_ROWS(CONV_TILE, lanes)                                                                  \
    WITH_6_ROWS(CONV_TILE, lanes)                                                                  \
    UP_TO_3(CONV_TILE, lanes, 7)                                                                   \
    UP_TO_3(CONV_TILE, lanes, 8)                                                                   \
    UP_TO_3(CONV_TILE, lanes, 9)                                                                   \
    UP_TO_2(CONV_TILE, lanes, 10)                                                                  \
    UP_TO_2(CONV_TILE, lanes, 11)                                                                  \
    UP_TO_2(CONV_TILE, lanes, 12)                                                                  \
    UP_TO_2(CONV_TILE, lanes, 13)                                                                  \
    UP_TO_2(CONV_TILE, lanes, 14)
#define CONV_NAMES_MORE_ROWS(lanes)                                                                \
    {WITH_5_ROWS(CONV_NAME, lanes)}, {WITH_6_ROWS(CONV_NAME, lanes)},                              \
        {UP_TO_3(CONV_NAME, lanes, 7)}, {UP_TO_3(CONV_NAME, lanes, 8)},                            \
        {UP_TO_3(CONV_NAME, lanes, 9)}, {UP_TO_2(CONV_NAME, lanes, 10)},                           \
        {UP_TO_2(CONV_NAME, lanes, 11)}, {UP_TO_2(CONV_NAME, lanes, 12)},                          \
        {UP_TO_2(CONV_NAME, lanes, 13)}, {                                                         \
        UP_TO_2(CONV_NAME, lanes, 14)                                                              \
    }
#else
#define CONV_TILES_MORE_ROWS(lanes)                                                                \
    WITH_5_ROWS(CONV_TILE, lanes)                                                                  \
    WITH_6_ROWS(CONV_TILE, lanes)
#define CONV_NAMES_MORE_ROWS(lanes)                                                                \
    {WITH_5_ROWS(CONV_NAME, lanes)}, {                                                             \
        WITH_6_ROWS(CONV_NAME, lanes)                                                              \
    }
#endif

// Defines FAMILY(conv_tiles_LANES). With a sample in every lane there are tiles of more rows.
#define CONV_TILES_EXPORT(lanes)                                                                   \
    CONV_TILES(lanes)                                                                              \
    conv_tile_shapes FAMILY(conv_tiles_##lanes) = {CONV_NAMES(lanes)};
#define CONV_TILES_EXPORT_FULL(lanes)                                                              \
    CONV_TILES(lanes)                                                                              \
    CONV_TILES_MORE_ROWS(lanes)                                                                    \
    conv_tile_shapes FAMILY(conv_tiles_##lanes) = {CONV_NAMES(lanes), CONV_NAMES_MORE_ROWS(lanes)};

#endif
