// Which layout and which kernels the layers of a model get, and why: what each layout
// is expected to cost.
#ifndef ADAM_MODEL_CHOICE_H
#define ADAM_MODEL_CHOICE_H

#include "core/json.h"
#include "model/model.h"

struct kernels;

// For mini-batches of `batch` samples; as columns for people, to be freed with free(),
// and as one object (adam-ctl(1)). NULL when out of memory.
char *choice_text(const struct model *model, const struct kernels *kernels, int batch);
json_t *choice_json(const struct model *model, const struct kernels *kernels, int batch);

#endif
