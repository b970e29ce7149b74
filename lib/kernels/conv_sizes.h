// Sizes that the ways to convolve and their scratch agree on. Inside lib/kernels.
#ifndef ADAM_KERNELS_CONV_SIZES_H
#define ADAM_KERNELS_CONV_SIZES_H

#include <stdbool.h>

#include "kernels/kernels.h"

static inline size_t window_in(const struct window *v) {
    return (size_t)v->c * (size_t)v->h * (size_t)v->w;
}

static inline size_t window_out_pixels(const struct window *v) {
    return (size_t)v->out_h * (size_t)v->out_w;
}

static inline bool window_pointwise(const struct window *v) {
    return v->kernel_h == 1 && v->kernel_w == 1 && v->stride_h == 1 && v->stride_w == 1 &&
           v->pad_h == 0 && v->pad_w == 0;
}

// Pictures that a direct weight gradient sums over before it leaves the registers.
enum { DIRECT_CHUNK = 8 };

// The direct way (portable/conv_direct.h) works on a padded copy of a picture,
// its columns sorted by their place within a stride, so that what a tap sees of
// one row of outputs lies in a row.
struct direct_sizes {
    int columns;    // of one phase of one row
    int row;        // floats from row to row: stride_w phases
    int rows;       // of a plane, padding included
    size_t plane;   // rows * row
    size_t picture; // c planes, and what the last vector reads beyond them
    int taps;       // of one map: c/groups * kernel_h * kernel_w
    bool narrow;    // two rows of outputs share a vector
    int strips;     // vectors of outputs of one map
};

struct direct_sizes direct_sizes(const struct convolution *conv, int lanes);
// Whether rows of outputs fill at least half of the lanes.
bool direct_fits(const struct convolution *conv, int lanes);

// The convolution that takes errors of outputs back to inputs, for stride 1: the
// kernels turned round, maps and channels exchanged, padding completed.
struct convolution conv_turned(const struct convolution *conv);

// Most vectors of maps in a tile of the weight gradient of blocks.
enum { GRADIENT_ROWS = 6 };

// How the weight gradient of blocks (block/weights.h) cuts one group's work, with
// `lanes` samples in vectors of `vector` floats.
struct gradient_sizes {
    int rows, channels, taps;      // the whole: vectors of maps x channels x taps
    int tile_rows, tile_columns;   // the largest tile: vectors of maps x channels
    int task_rows, task_columns;   // what is summed up before it is folded
    int chunk_height, chunk_width; // outputs that stay in the L1 cache
    bool packed;                   // whether inputs are packed too
};

struct gradient_sizes gradient_sizes(const struct convolution *conv, int lanes, int vector);

// Begin of piece i of `pieces` nearly equal ones.
static inline int cut(int whole, int pieces, int i) {
    return (int)((long long)whole * i / pieces);
}

static inline int cuts(int whole, int most) {
    return (whole + most - 1) / most;
}

#endif
