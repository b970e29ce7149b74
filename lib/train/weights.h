// What a run trains, in its checkpoint: the parameters, and what the optimizer keeps beside them.
#ifndef ADAM_TRAIN_WEIGHTS_H
#define ADAM_TRAIN_WEIGHTS_H

#include "run/checkpoint.h"
#include "run/settings.h"

struct error;

// The optimizer, as the settings have it. Its state and the average go on only under the same rule
// (checkpoint_turn), and where the checkpoint has the state (checkpoint_lacks_state); else
// settings->state_since is now. STATUS_USAGE or STATUS_DATA as settings_optimizer; STATUS_IO: out
// of memory.
int weights_rule(struct checkpoint *checkpoint, struct settings *settings, struct error *err);

// Room for what is not there yet: the parameters, as the model begins with the checkpoint's
// seed, and state at 0, if the optimizer has any. STATUS_IO: out of memory.
int weights_make(struct checkpoint *checkpoint, const struct model *model, struct error *err);
// The average of a run that begins is its weights.
void weights_begin_average(struct checkpoint *checkpoint);

#endif
