// Which layers of a model hold their samples in blocks (kernels/kernels.h,
// "Blocks"), and how many lanes a pass of n samples gives to each block: the one
// decision about memory layouts, made here for the whole net, so that activations
// change their layout only where a stack of convolutions begins and ends.
#ifndef ADAM_MODEL_LAYOUT_H
#define ADAM_MODEL_LAYOUT_H

#include <stdbool.h>

#include "model/model.h"

struct kernels;

// Whether it is a convolution that blocks can make faster: they do not take dilated ones.
bool layout_gains(const struct layer *layer);

// Whether layer i of the model is one that a pass may lay out in blocks; blocked[]
// holds the answer for all layers before it.
bool layout_blocked(const struct layer *layer, const bool *blocked);

// The lanes of the blocks in which a pass of n samples is expected to be fastest;
// 0: plain samples. Of a partition's model as of the whole one.
int layout_lanes(const struct model *part, const struct kernels *kernels, int n);

// What its convolutions are expected to cost in that layout, in vector multiply-adds.
double layout_price(const struct model *part, const struct kernels *kernels, int n);

// The most lanes that such a pass may give to a block.
int layout_lanes_most(const struct kernels *kernels, int n);

// Places for samples that n samples take, at most, whatever layout is chosen.
int layout_places_most(int n);

#endif
