// What the partitions of a model have, and what they send each other: adam-ctl check --partitions.
#ifndef ADAM_MODEL_CUT_TABLE_H
#define ADAM_MODEL_CUT_TABLE_H

#include "core/json.h"
#include "model/cut.h"

// One object, at a mini-batch of `batch` samples; its keys are in adam-ctl(1). A new reference, or
// NULL when out of memory.
json_t *cut_table_json(const struct cut *cut, const struct model *model, int batch);
// The same as aligned columns for people, to be freed with free(); NULL when out of memory.
char *cut_table_text(const struct cut *cut, const struct model *model, int batch);

#endif
