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

// Of a pass of blocks of as many lanes as vectors have, `vector`. The convolution is the one whose
// data and products these are: for CONV_BACK_INPUT the turned one (kernels/conv_sizes.h).
struct winograd_sizes winograd_sizes(const struct convolution *conv, int vector,
                                     enum conv_pass pass);

// The same of blocks of one lane, single samples, which have maps in the lanes: channels and maps
// are vectors of so many. .points is 0 where they do not fill vectors, or there are groups.
struct winograd_sizes winograd_single_sizes(const struct convolution *conv, int vector,
                                            enum conv_pass pass);

// What a pass of so many blocks is expected to cost, in vector multiply-adds; INFINITY when it is
// not for such kernels or lanes, or ADAM_WINOGRAD=0 in the environment switches it off. And whether
// that is less than the direct way (conv_cost.c).
double winograd_cost(const struct convolution *conv, int blocks, int lanes, int vector,
                     enum conv_pass pass);
bool winograd_fits(const struct convolution *conv, int blocks, int lanes, int vector,
                   enum conv_pass pass);

// Whether the forward pass of a single sample, by kernels that are at the points already, is
// expected to be so much faster than the direct way that their memory is worth it.
bool winograd_kept_fits(const struct convolution *conv, int vector);

// Floats of scratch of all passes, of blocks and of single samples; 0 when it is not for such
// kernels.
size_t winograd_scratch(const struct convolution *conv, int vector);

#endif
