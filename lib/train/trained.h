// A checkpoint with all that predictions need: names for all classes, the model's operations.
#ifndef ADAM_TRAIN_TRAINED_H
#define ADAM_TRAIN_TRAINED_H

#include "run/checkpoint.h"

struct error;
struct ops;

// Plain to read. {0} is not open, and can be closed.
struct trained {
    struct checkpoint checkpoint;
    struct classes names; // one for each output of the model
    struct ops *input;    // the model's input operations; NULL: none
};

// `path` and `sets` as checkpoint_load takes them. trained_close also after a failure.
// STATUS_NOINPUT, STATUS_DATA, STATUS_IO.
int trained_open(struct trained *trained, const char *path, const char *const *sets,
                 size_t set_count, struct error *err);
// The same without its parameters (checkpoint_load_model).
int trained_open_model(struct trained *trained, const char *path, const char *const *sets,
                       size_t set_count, struct error *err);
void trained_close(struct trained *trained);

// The class names of a model with `count` outputs: those given, then numbers for
// outputs that have none. STATUS_DATA when there are more names than outputs.
int trained_names(struct classes *out, const struct classes *given, int count, struct error *err);

#endif
