// The operations that a model asks for on every picture, ready to run.
#ifndef ADAM_RUN_MODEL_OPS_H
#define ADAM_RUN_MODEL_OPS_H

#include "model/model.h"
#include "ops/ops.h"

struct error;

// As model_read; of a run, a checkpoint or its file, the model that is in it. A picture that the
// input's operations name ("mean file=mean.npy") is read, and put into the model's text in place of
// its name: so checkpoints, servers and workers have it. STATUS_NOINPUT, STATUS_DATA.
int model_ops_read(struct model **out, const char *path, const char *const *sets, size_t set_count,
                   struct error *err);

// Parses the input's `ops`, which may not draw random numbers. A mistake is shown
// in its place in the model's text, STATUS_DATA. Freed with ops_free.
int model_ops_open(struct ops **out, const struct model *model, struct error *err);

// The standard deviation that the inputs may be expected to have, for model_init: pictures are of
// bytes, and go through these operations. What is no picture is taken to have 1, and so are inputs
// of operations that suit pictures of their size only in part, as "gray" at their end. STATUS_DATA:
// as model_ops_open.
int model_ops_deviation(double *deviation, const struct model *model, struct error *err);

#endif
