// The operations that a model asks for on every picture, ready to run.
#ifndef ADAM_TRAIN_MODEL_OPS_H
#define ADAM_TRAIN_MODEL_OPS_H

#include "model/model.h"
#include "ops/ops.h"

// Parses the input's `ops`, which may not draw random numbers. A mistake is shown
// in its place in the model's text, STATUS_DATA. Freed with ops_free.
int model_ops_open(struct ops **out, const struct model *model, struct error *err);

#endif
