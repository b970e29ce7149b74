// Convolutions of few outputs, in blocks of one sample, as a dense layer: what an output pixel sees
// is a row of inputs, its maps are the units. So weights are used as they lie; the other ways
// arrange all of them anew in each pass, which takes longer than the products of few pixels.
// Of one group only.
// Inside lib/kernels and lib/model.
#ifndef ADAM_KERNELS_CONV_ROWS_H
#define ADAM_KERNELS_CONV_ROWS_H

#include <stdbool.h>
#include <stddef.h>

struct convolution;

// Output pixels of so many blocks; and what each sees: channel after channel, as weights lie.
size_t conv_rows_count(const struct convolution *conv, int blocks);
size_t conv_rows_inputs(const struct convolution *conv);

// The rows up to which this is expected to be the fastest way in blocks of one sample
// (conv_cost.c), with vectors of so many floats; 0: never.
size_t conv_rows_most(const struct convolution *conv, int vector);

// Floats of scratch for passes of so many blocks at most, that any family takes this way: two
// matrices of rows, where they have to be gathered, and what a dense layer needs.
size_t conv_rows_scratch(const struct convolution *conv, int blocks);

// Floats of a matrix of rows, in whole cache lines.
size_t conv_rows_floats(const struct convolution *conv, size_t rows);

// Whether blocks lie as rows do: then the two functions below are not needed.
bool conv_rows_lie(const struct convolution *conv);

// The rows of x, zeros for padding; and the adjoint, which writes dx.
void conv_rows_gather(float *rows, const float *x, int blocks, const struct convolution *conv);
void conv_rows_scatter(float *dx, const float *rows, int blocks, const struct convolution *conv);

#endif
