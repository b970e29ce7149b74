// A run of one process that people look at and direct as they do a run of many: adam-ctl finds it
// by RUN/controller.port, and is answered as by a controller, which this process is to itself. Its
// socket is of this machine's user alone.
//
// Threads: those of the network answer what is only looked at, and queue the rest for the thread
// that trains, which takes it between mini-batches and where it stands still. Nothing is asked of
// the training threads.
#ifndef ADAM_ROLE_ALONE_H
#define ADAM_ROLE_ALONE_H

#include "train/trainer.h"

struct error;

// As trainer_run, whose hooks and director it puts itself in front of; `name` is the process's, for
// people. A run that cannot be found goes on: hooks.say has why. Who asked it to stop is answered
// last, when all is saved and closed.
int alone_run(struct trainer_config *config, const char *name, struct error *err);

#endif
