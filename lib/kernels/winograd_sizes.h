// What block/winograd.h works with, and when it is worth its transforms. Inside
// lib/kernels.
#ifndef ADAM_KERNELS_WINOGRAD_SIZES_H
#define ADAM_KERNELS_WINOGRAD_SIZES_H

#include "kernels/kernels.h"

enum {
    WINOGRAD_TILE = 4,    // outputs along a side of a tile
    WINOGRAD_COLUMNS = 3, // tiles that are multiplied at a time
    WINOGRAD_FEW = 4,     // channels, whose products are not kept
    WINOGRAD_PARTS = 4,   // of a picture, whose tiles differ
};

// Tiles of one size: all, which reach over the picture, or, where they are cut at its end, the
// whole ones, those of the last row, of the last column, and the last.
struct winograd_part {
    int y, x;         // the first output pixel
    int down, across; // tiles of a picture
    int high, wide;   // outputs of a tile, up to WINOGRAD_TILE
};

struct winograd_sizes {
    int points; // along a side of a tile of WINOGRAD_TILE outputs; 0: not for such kernels
    struct winograd_part parts[WINOGRAD_PARTS];
    int part_count;
    int channels, maps; // of one group
    int chunk;          // tiles at a time
    int share;          // of the maps, whose errors are at the points at a time
    bool few;           // channels: no products are kept
    bool far;           // do the kernels lie, beyond the L2 cache, and so most else
    // Floats from one slice (a pair of points) to the next: of kernels, and of a chunk, of data,
    // and of products or errors.
    size_t kernel_slice, data_slice, value_slice;
    // Where they begin in scratch, behind so many floats of kernels, and how many all are.
    size_t kernels, data, values, floats;
};

// Of a pass, with vectors, and blocks, of so many lanes. The convolution is the one whose
// data and products these are: for CONV_BACK_INPUT the turned one (kernels/conv_sizes.h).
struct winograd_sizes winograd_sizes(const struct convolution *conv, int lanes,
                                     enum conv_pass pass);

// What a pass of one block is expected to cost, in vector multiply-adds; INFINITY
// when it is not for such kernels, or ADAM_WINOGRAD=0 in the environment switches it
// off. And whether that is less than the direct way.
double winograd_cost(const struct convolution *conv, int lanes, enum conv_pass pass);
bool winograd_fits(const struct convolution *conv, int lanes, enum conv_pass pass);

// Floats of scratch of all passes; 0 when it is not for such kernels.
size_t winograd_scratch(const struct convolution *conv, int lanes);

#endif
