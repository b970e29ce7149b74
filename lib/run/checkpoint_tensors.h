// Names of a checkpoint's tensors, as adam-checkpoint(5) has them.
#ifndef ADAM_RUN_CHECKPOINT_TENSORS_H
#define ADAM_RUN_CHECKPOINT_TENSORS_H

#include "model/model.h"
#include "rule/optimizer.h"
#include "store/safetensors.h"

struct error;

// Which values of a model lie where: one entry per block of parameters.
struct named_parameter {
    char *name; // "c1.weight", "momentum.c1.bias"
    const struct parameter *parameter;
};

// All parameters of `model`, in the order of the layers: prefix NULL for the parameters, else
// "momentum" and so on. *out is freed with named_parameters_free. STATUS_IO when out of memory.
int named_parameters(struct named_parameter **out, size_t *count, const struct model *model,
                     const char *prefix, struct error *err);
void named_parameters_free(struct named_parameter *named, size_t count);

// Of all that a checkpoint has: of what predicts, then of the states of the rule. Where an average
// is kept, it is what predicts, and the weights that are trained come last.
struct named_lists {
    struct named_parameter *named[1 + KEPT_MOST];
    size_t count, each; // lists, entries of each
    bool averaged;
};
// Freed with named_lists_free, also after a failure. `optimizer` NULL: what predicts alone.
// STATUS_IO when out of memory.
int named_lists_make(struct named_lists *lists, const struct model *model,
                     const struct optimizer *optimizer, struct error *err);
void named_lists_free(struct named_lists *lists);
// Where the values of a list lie: array 0 are the parameters, behind them is what the optimizer
// keeps.
size_t named_lists_array(const struct named_lists *lists, size_t list);

// As a tensor of a file, which shares its name. `values` are those of the whole model; NULL: the
// tensor has no data.
struct tensor named_tensor(const struct named_parameter *named, const float *values);

#endif
