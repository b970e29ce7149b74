// What block/winograd.h works with, and when it is worth its transforms. Inside
// lib/kernels.
#ifndef ADAM_KERNELS_WINOGRAD_SIZES_H
#define ADAM_KERNELS_WINOGRAD_SIZES_H

#include "kernels/kernels.h"

enum {
    WINOGRAD_TILE = 4,    // outputs along a side of a tile
    WINOGRAD_COLUMNS = 3, // tiles that are multiplied at a time
    WINOGRAD_FEW = 4,     // channels, whose products are not kept
};

struct winograd_sizes {
    int points;         // along a side of a tile; 0: not for such kernels
    int down, across;   // tiles of a picture
    int channels, maps; // of one group
    int chunk;          // tiles at a time
    bool few;           // channels: no products are kept
    // Floats from one slice (a pair of points) of a chunk to the next: of data, and of
    // products or errors.
    size_t data_slice, value_slice;
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
