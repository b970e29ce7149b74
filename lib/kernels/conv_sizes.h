// Sizes that the ways to convolve and their scratch agree on. Inside lib/kernels.
#ifndef ADAM_KERNELS_CONV_SIZES_H
#define ADAM_KERNELS_CONV_SIZES_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/shapes.h"

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

static inline bool window_dilated(const struct window *v) {
    return v->skip_h > 0 || v->skip_w > 0;
}

// Whether each group has one channel and one map, and there are several.
static inline bool conv_depthwise(const struct convolution *conv) {
    return conv->groups > 1 && conv->groups == conv->window.c && conv->groups == conv->maps;
}

static inline size_t conv_taps(const struct convolution *conv) {
    return (size_t)conv->window.kernel_h * (size_t)conv->window.kernel_w;
}

static inline size_t conv_weights(const struct convolution *conv) {
    return (size_t)conv->maps * (size_t)(conv->window.c / conv->groups) * conv_taps(conv);
}

// How many groups pass as one where blocks have so many lanes, in vectors of `vector` floats
// (block/groups.inc.h): a divisor of their number. And the convolution that they are then.
int conv_merge(const struct convolution *conv, int lanes, int vector);
struct convolution conv_merged(const struct convolution *conv, int merge);

// Where the weights of a map lie among those of all channels of the merged groups.
static inline size_t conv_merged_place(const struct convolution *conv, int merge, int map) {
    int maps = conv->maps / conv->groups, channels = conv->window.c / conv->groups;
    size_t own = (size_t)channels * conv_taps(conv);
    return ((size_t)map * (size_t)merge + (size_t)(map / maps % merge)) * own;
}

// Pictures that a direct weight gradient sums over before it leaves the registers.
enum { DIRECT_CHUNK = 8 };

// The direct way (portable/conv_direct.inc.h) works on a padded copy of a picture,
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

// The convolution that takes error gradients of outputs back to inputs, for stride 1: the
// kernels turned round, maps and channels exchanged, padding completed.
struct convolution conv_turned(const struct convolution *conv);

// The picture's rows and columns that `count` outputs see, where they are padded.
static inline int window_reach(int count, int stride, int kernel) {
    return (count - 1) * stride + kernel;
}

#endif
