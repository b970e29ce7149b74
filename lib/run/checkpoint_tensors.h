// Names of a checkpoint's tensors, metadata and files: what save and load share.
// Inside lib/run only.
#ifndef ADAM_RUN_CHECKPOINT_TENSORS_H
#define ADAM_RUN_CHECKPOINT_TENSORS_H

#include "model/model.h"
#include "store/safetensors.h"

#define CHECKPOINT_FILE "model.safetensors"
#define CHECKPOINT_MANIFEST "manifest.json"
#define CHECKPOINT_FORMAT "adam"

// Versions of the manifest: those before this one have no checksum of their own.
enum { CHECKPOINT_SEALED = 2 };

// Which values of a model lie where: one entry per block of parameters.
struct place {
    char *name; // "c1.weight", "momentum.c1.bias"
    const struct parameter *parameter;
};

// All places of `model`: prefix NULL for the parameters, else "momentum" and so
// on. *out is freed with places_free. STATUS_IO when out of memory.
int places_of(struct place **out, size_t *count, const struct model *model, const char *prefix,
              struct error *err);
void places_free(struct place *places, size_t count);

#endif
