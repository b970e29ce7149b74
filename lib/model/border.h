// A model whose lower layers are frozen, as two: what is below the border gives each sample the
// same outputs in every epoch, and what is above it reads nothing else.
#ifndef ADAM_MODEL_BORDER_H
#define ADAM_MODEL_BORDER_H

#include <stdbool.h>

#include "model/model.h"

struct error;

struct border {
    const struct layer *layer; // the last one below it
    // Both share all with the model, which must outlive them; parameters lie where they do there.
    struct model below; // it ends with the layer, and has no output layer
    struct model above; // its input are the layer's outputs
};

// The highest border, to be freed with border_free. Below it no layer learns or drops outputs, none
// multiplies the samples of a pass together (dense, local, convolutions of fewer than 16 outputs),
// whose rounding then depends on the others, and at least one has weights. False: there is none,
// *border is zeros. STATUS_IO: out of memory.
int border_find(struct border *border, bool *found, const struct model *model, struct error *err);
void border_free(struct border *border);

#endif
