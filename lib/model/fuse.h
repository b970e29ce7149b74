// What layers of a net do for their neighbours, so that activations pass through the
// caches less often. Nothing here changes a result.
//   - An activation that alone reads a layer which can activate its outputs itself is left to
//     that layer: both have the same outputs and error gradients. Not so where the backward pass
//     reads what was activated, since that layer would have to keep it.
//   - relu(x) followed by a maximum is the maximum followed by relu, on fewer values: it
//     moves from a layer to the maxpool that alone reads it.
//   - The error gradients of a relu's outputs pass through the relu where they are written, if the
//     layer that writes them can do so.
//   - A batch norm whose parameters are folded is left to the layer below (model/fold.h).
//   - Outputs that the backward pass does not read, or reads only where it writes their error
//     gradients, are overwritten by these.
// Inside lib/model only.
#ifndef ADAM_MODEL_FUSE_H
#define ADAM_MODEL_FUSE_H

#include "model/layer.h"

struct fused {
    enum act act; // that the layer applies to its outputs, in this net
    float slope;  // of ACT_LEAKY
    bool within;  // the layer that it reads has done its work
    int source;   // the layer that computes its outputs: itself, or where it is within, one below
    bool undone;  // its reader takes error gradients back through its relu
    enum act undoes; // that relu, of such a reader; else ACT_LINEAR
    bool spent;      // once its readers have run forward, nobody reads its outputs again
    bool over;       // or only those who then write their error gradients there
};

// How many layers read each; freed with free(). NULL when out of memory.
int *fuse_readers(const struct model *model);

// `fused` has layer_count elements, `readers` how many layers read each; folds: batch norms are
// folded.
void fuse(const struct model *model, const int *readers, bool folds, struct fused *fused);

#endif
