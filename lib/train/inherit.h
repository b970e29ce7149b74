// What a model takes over from another one, layer by layer: fine-tuning begins with the weights of
// a net that was trained on something else.
#ifndef ADAM_TRAIN_INHERIT_H
#define ADAM_TRAIN_INHERIT_H

#include "run/checkpoint.h"

struct error;

// Copies into to->parameters, which are there, those of each layer of the checkpoint `path` whose
// name and shape are a layer's of to->model. Says, a line each, how much that was and which layers
// were left as they are. STATUS_DATA: none fits; those of checkpoint_load.
int inherit_weights(struct checkpoint *to, const char *path, void (*say)(void *self, const char *),
                    void *self, struct error *err);
// The same without to->parameters, which stay as they are and may be NULL: what of the checkpoint
// would be taken over, when all of it was read.
int inherit_check(struct checkpoint *to, const char *path, void (*say)(void *self, const char *),
                  void *self, struct error *err);

#endif
