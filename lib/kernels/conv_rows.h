// Convolutions of few outputs, in blocks, as a dense layer: what an output pixel of a sample sees
// is a row of inputs, its maps are the units. So weights are used as they lie; the other ways
// arrange all of them anew in each pass, which takes longer than the products of few pixels. Of one
// group only. Inside lib/kernels and lib/model.
#ifndef ADAM_KERNELS_CONV_ROWS_H
#define ADAM_KERNELS_CONV_ROWS_H

#include <stdbool.h>
#include <stddef.h>

struct convolution;

// Rows of so many blocks: block by block, pixel by pixel, sample by sample. And what each sees:
// channel after channel, as weights lie.
size_t conv_rows_count(const struct convolution *conv, int blocks, int lanes);
size_t conv_rows_inputs(const struct convolution *conv);

// Whether this is expected to be the fastest way for so many blocks (conv_cost.c), with vectors of
// so many floats.
bool conv_rows_fit(const struct convolution *conv, int blocks, int lanes, int vector);

// Floats of scratch for passes of at most so many places for samples, that any family takes this
// way: two matrices of rows, one of outputs, and what a dense layer needs.
size_t conv_rows_scratch(const struct convolution *conv, int places);

// Floats of a matrix of so many numbers in each row, in whole cache lines.
size_t conv_rows_floats(size_t rows, size_t each);

// Whether blocks lie as rows do: then nothing needs to be gathered.
bool conv_rows_lie(const struct convolution *conv, int lanes);

// The rows [first, last) of x, of as many as there are in its blocks, to their places among `rows`;
// zeros for padding. And the adjoint of all rows, which writes dx.
void conv_rows_gather(float *rows, const float *x, size_t first, size_t last, int lanes,
                      const struct convolution *conv);
void conv_rows_scatter(float *dx, const float *rows, int blocks, int lanes,
                       const struct convolution *conv);

#endif
