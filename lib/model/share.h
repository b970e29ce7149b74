// What one partition has of a layer of the whole model (model/cut.h): the part of the types of
// layers. Inside lib/model only.
#ifndef ADAM_MODEL_SHARE_H
#define ADAM_MODEL_SHARE_H

#include "model/layer.h"

enum { LAYER_TENSORS = 2 + LAYER_STATISTICS };

// Entries of a tensor of parameters: those whose index of each dimension lies in [low, high).
struct box {
    int rank, dims[6], low[6], high[6];
};

struct share {
    enum cut_way way;
    // Of the layer's outputs: those that are this partition's, which no other has; and those that
    // it computes, which hold them. With CUT_INPUTS the latter are sums over its own inputs.
    struct region own, makes;
    struct region needs[LAYER_INPUTS_MAX]; // of the outputs of each layer that it reads
    bool exact;                            // all that it computes is what the layer gives
    struct layer layer;                    // as the partition computes it
    struct box boxes[LAYER_TENSORS];       // its weights, biases and statistics among the layer's
};

// The tensors in the order of their places.
struct parameter *layer_tensor(struct layer *layer, int i);

// Whether the layer, of a whole model, may be cut so: a region of it is made of regions of what it
// reads.
bool share_may(const struct layer *layer, enum cut_way way);
// Of partition `at` of `count`.
struct share_place {
    enum cut_way way;
    int at, count;
    const struct region *from;  // CUT_INPUTS: what it owns of the layer that this one reads
    const struct region *makes; // CUT_ROWS: what it is to compute; NULL: what it owns
};
void share_make(struct share *share, const struct model *model, const struct layer *layer,
                const struct share_place *place);

// For the types, which go by share->makes: of those that may be cut by rows and by maps.
int share_any(const struct layer *layer, enum cut_way way);
// What windows over the rows of share->makes see of the input, and the padding of
// those that see its border.
void share_window(struct share *share);
// Makes tensor i that of indices [low, high) of its first dimension.
void share_first(struct share *share, int i, int low, int high);

#endif
