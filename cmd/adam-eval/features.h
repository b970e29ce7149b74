// What a layer of a model gives for each sample, as samples that can be trained on.
#ifndef ADAM_EVAL_FEATURES_H
#define ADAM_EVAL_FEATURES_H

#include "adam-eval/options.h"

struct error;

// Writes them, in the order of the samples, where --out says.
int features_write(const struct options *o, struct error *err);

#endif
