// A model as far as one of its layers: what that layer and those below it compute, and nothing
// else.
#ifndef ADAM_MODEL_TRUNCATE_H
#define ADAM_MODEL_TRUNCATE_H

#include "model/model.h"

struct error;

// Makes the model of `at`, which is no output layer, and of all layers that it needs, with an
// output of one unit that reads it; and *parameters for it from those of `model`, to be freed with
// free(). The output's are zeros. STATUS_IO: out of memory.
int model_truncate(struct model **out, float **parameters, const struct model *model,
                   const float *from, const struct layer *at, struct error *err);

#endif
