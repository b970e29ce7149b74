// Sizes of Winograd's minimal filtering (block/winograd.inc.h), and whether it is faster than the
// direct way. Inside lib/kernels.
#ifndef ADAM_KERNELS_WINOGRAD_SIZES_H
#define ADAM_KERNELS_WINOGRAD_SIZES_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/pass.h"
#include "kernels/winograd_tile.h"

struct convolution;

enum {
    WINOGRAD_FEW = 4,   // channels: with so few a product costs less than storing it
    WINOGRAD_PARTS = 4, // of a picture, by the size of their tiles
};

// Tiles of one size. One part has all tiles, which then reach over the picture's end; or they are
// cut there: whole tiles, those of the last row, of the last column, and the last one.
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
    int share;          // maps whose error gradients are at the points at a time
    bool few;           // few channels: no products are stored
    bool far;           // kernels, and so most else, come from beyond the L2 cache
    // Floats from one slice (a pair of points) to the next: of kernels, and of a chunk, of data,
    // and of products or error gradients.
    size_t kernel_slice, data_slice, value_slice;
    // Where each begins in scratch (`kernels`: their size, they come first), and the sum of all.
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

// Of the forward pass of single samples, in blocks of one lane, by kernels that are at the points
// already; the maps are in the lanes: channels and maps are vectors of so many floats, and
// `kernels` are no part of scratch. .points is 0 where it is not for such kernels. And whether it
// is expected to be so much faster than the direct way that the kernels' memory is worth it.
struct winograd_sizes winograd_single_sizes(const struct convolution *conv, int lanes);
bool winograd_single_fits(const struct convolution *conv, int lanes);

// Floats of scratch of all passes; 0 when it is not for such kernels.
size_t winograd_scratch(const struct convolution *conv, int lanes);

#endif
