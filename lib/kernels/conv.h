// Convolutions.
#ifndef ADAM_KERNELS_CONV_H
#define ADAM_KERNELS_CONV_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/pass.h"

struct convolution;
struct window;

// Floats of scratch that conv_kernels of any family need, whatever n is;
// SIZE_MAX when they do not fit in size_t.
size_t conv_scratch(const struct convolution *conv);

// Floats of scratch that conv_block_kernels, winograd_kernels and conv_kept_kernels of any family
// need, for any number of blocks; SIZE_MAX when they do not fit in size_t. 0 of dilated ones, which
// they do not take.
size_t conv_block_scratch(const struct convolution *conv);

// Of plain samples. The first three take dilated windows.
struct conv_kernels {
    // n pictures: y (n x maps x out pixels), weights (maps x
    // c/groups x kernel_h x kernel_w), without bias; the error gradients of the pictures;
    // the gradient of the weights. The last two write all of their results.
    // `scratch` has conv_scratch() floats.
    void (*forward)(float *y, const float *x, const float *weights, int n,
                    const struct convolution *conv, float *scratch);
    void (*back_input)(float *dx, const float *dy, const float *weights, int n,
                       const struct convolution *conv, float *scratch);
    void (*back_weights)(float *dweights, const float *dy, const float *x, int n,
                         const struct convolution *conv, float *scratch);

    // What one output pixel (out_y, out_x) sees of n pictures: n rows of
    // c*kernel_h*kernel_w; and the adjoint, which adds into the pictures.
    void (*patch)(float *rows, const float *pictures, int n, const struct window *window, int out_y,
                  int out_x);
    void (*patch_add)(float *pictures, const float *rows, int n, const struct window *window,
                      int out_y, int out_x);

    // The way that a pass of a convolution of this shape takes, for people: "direct",
    // "columns", "product"... `lanes` of its blocks; 0: plain samples.
    const char *(*way)(enum conv_pass pass, const struct convolution *conv, int lanes);
};

// What a pass adds up of what it writes, for a norm that reads it next: of each map, for each lane
// of blocks, maps x lanes floats; over all blocks and pixels.
struct conv_sums {
    float *from;          // of the forward pass: the outputs' first, by which sums lose no digits
    float *sum, *product; // of outputs less that, and of their squares; or of error gradients, and
                          // of these times ...
    const float *other;   // ... what lies as they do, or, NULL, the outputs of the relu
};

// What becomes of error gradients dx as they are written, by what is laid out as they are: others
// are added; they go on through a relu, where its outputs are above 0 and below a bound, which may
// be INFINITY; and they are added up, with `other` or a relu.
struct conv_ends {
    const float *more;            // NULL: none
    const float *relu;            // its outputs; NULL: there is none
    float most;                   // its bound
    const struct conv_sums *sums; // NULL: nobody wants them
};

// The passes of blocks. Forward adds the biases and, when told to, applies relu, or, without one,
// adds up for `sums`, which may be NULL; the last one also sums up the gradient of the biases,
// unless dbiases is NULL.
// `scratch` has conv_block_scratch() floats.
struct conv_passes {
    void (*forward)(float *y, const float *x, const float *weights, const float *biases, bool relu,
                    const struct conv_sums *sums, int blocks, int lanes,
                    const struct convolution *conv, float *scratch);
    void (*back_input)(float *dx, const float *dy, const float *weights,
                       const struct conv_ends *ends, int blocks, int lanes,
                       const struct convolution *conv, float *scratch);
    void (*back_weights)(float *dweights, float *dbiases, const float *dy, const float *x,
                         int blocks, int lanes, const struct convolution *conv, float *scratch);
};

struct conv_block_kernels {
    struct conv_passes passes;
    // The ends of so many pixels of dx, `run` floats each, that were written without.
    void (*finish)(float *dx, const struct conv_ends *ends, size_t pixels, size_t run);
};

// The same by Winograd's minimal filtering, for square kernels of 3 and 5 at stride 1: in blocks of
// as many lanes as there are, and in those of one where channels and maps fill vectors.
// Rounding: of 1e-6 of the sum of magnitudes (block/winograd.inc.h).
struct winograd_kernels {
    // Where it is expected to be faster (ADAM_WINOGRAD=0: never).
    bool (*fits)(enum conv_pass pass, const struct convolution *conv, int blocks, int lanes);
    struct conv_passes passes;
};

// Forward passes in blocks of one sample, by what is kept of weights that do not change: kernels at
// the points of Winograd's filtering, whose rounding is as of winograd_kernels, or packed weights.
struct conv_kept_kernels {
    const char *way; // for people
    // Floats that are kept; 0: it would not be much faster than without.
    size_t (*size)(const struct convolution *conv);
    void (*keep)(float *kept, const float *weights, const struct convolution *conv);
    // What parts of the maps are a multiple of; 0: they are all done at once.
    int (*unit)(const struct convolution *conv);
    // The maps [first, end), with their biases, and relu where told so. The window may be some rows
    // of the one for which the kernels were kept.
    void (*forward)(float *y, const float *x, const float *kept, const float *biases, bool relu,
                    int blocks, int first, int end, const struct convolution *conv, float *scratch);
};

#endif
