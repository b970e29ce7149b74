// Whether samples are what a model learns from: labels, or targets (sample/targets.h).
#ifndef ADAM_TRAIN_GOAL_H
#define ADAM_TRAIN_GOAL_H

#include "model/model.h"

struct error;

// Samples of `path` have so many targets each; 0: labels. STATUS_DATA: the last layer learns
// something else, or has another number of outputs.
int goal_check(const struct model *model, const char *path, int targets, struct error *err);

#endif
