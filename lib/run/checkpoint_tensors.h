// Names of a checkpoint's tensors, metadata and files: what save and load share.
// Inside lib/run only.
#ifndef ADAM_RUN_CHECKPOINT_TENSORS_H
#define ADAM_RUN_CHECKPOINT_TENSORS_H

#include "model/model.h"
#include "store/safetensors.h"

struct error;

#define CHECKPOINT_FILE "model.safetensors"
#define CHECKPOINT_MANIFEST "manifest.json"
#define CHECKPOINT_FORMAT "adam"

// Versions of the manifest: those before this one have no checksum of their own.
enum { CHECKPOINT_SEALED = 2 };

// Which values of a model lie where: one entry per block of parameters.
struct named_parameter {
    char *name; // "c1.weight", "momentum.c1.bias"
    const struct parameter *parameter;
};

// All parameters of `model`: prefix NULL for the parameters, else "momentum" and so
// on. *out is freed with named_parameters_free. STATUS_IO when out of memory.
int named_parameters(struct named_parameter **out, size_t *count, const struct model *model,
                     const char *prefix, struct error *err);
void named_parameters_free(struct named_parameter *named, size_t count);

#endif
