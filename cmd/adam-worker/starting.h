// What a run of one process begins with: a model and its overrides, or what is stored of a run
// that goes on, with what is given now in its place.
#ifndef ADAM_WORKER_STARTING_H
#define ADAM_WORKER_STARTING_H

#include "train/trainer.h"

struct error;
struct options;
struct talker;

// Fills in the checkpoint and the folder, and reads the stored settings into `o` for --resume, for
// which the command line is read once more. The talker says what is different now. `config` points
// into `o`; its checkpoint is the caller's, also after a failure. STATUS_USAGE, and those of what
// reads models and checkpoints.
int starting_prepare(struct options *o, struct trainer_config *config, struct talker *talker,
                     int argc, char **argv, struct error *err);

#endif
