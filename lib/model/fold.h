// Batch norms without a pass of their own. By their running statistics they only scale and shift
// each map, so that in prediction the convolution or dense layer below can do it, with weights and
// biases for both (Jacob 2018, 3.2).
#ifndef ADAM_MODEL_FOLD_H
#define ADAM_MODEL_FOLD_H

#include "model/model.h"

struct error;

// Whether the layer is a batch norm that the layer which it reads can do: it alone reads that
// layer. `readers` has how many layers read each.
bool fold_takes(const struct model *model, const int *readers, const struct layer *layer);

// The model's parameters for nets that fold (NET_FOLDED), of which those of norms are not read.
// *out is freed with free(); NULL: there is nothing to fold. STATUS_IO when out of memory.
int fold_parameters(float **out, const struct model *model, const float *parameters,
                    struct error *err);

#endif
