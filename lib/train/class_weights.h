// How much each class counts in the loss of training, so that rare ones are learnt as well as
// others: found from the training set, and put into the model, which checkpoints, servers and
// workers have.
#ifndef ADAM_TRAIN_CLASS_WEIGHTS_H
#define ADAM_TRAIN_CLASS_WEIGHTS_H

#include "data/dataset.h"
#include "model/model.h"
#include "run/settings.h"

struct error;

// Replaces *model by one whose output layer has the key class-weights. `wanted` is
//   "auto": samples / (classes * samples of the class), of the classes that have any: the mean
//           over all samples is 1; a sample of several classes counts in each;
//   a file of lines CLASS<TAB>WEIGHT.
// A class that has no sample, or no line, has 1. STATUS_NOINPUT, STATUS_DATA.
int class_weights_put(struct model **model, const char *wanted, const struct dataset *train,
                      struct error *err);
// The same, as the settings want it, for who has not opened their training set. Does nothing where
// they want nothing.
int class_weights_apply(struct model **model, const struct settings *settings,
                        const struct source_hooks *hooks, struct error *err);

#endif
