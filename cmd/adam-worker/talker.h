// What people hear of the training, and how they speak to it by signals.
#ifndef ADAM_WORKER_TALKER_H
#define ADAM_WORKER_TALKER_H

#include <stdbool.h>

#include "cli/progress.h"
#include "train/trainer.h"

struct talker {
    struct progress progress;
    int saves_seen; // requests for a checkpoint that were answered
};

// From here on signals are heard; the caller ends with progress_clear.
void talker_start(struct talker *talker, bool quiet);

// The hooks of the training; `self` is the talker.
enum trainer_wish talker_wish(void *self);
void talker_show(void *self, const struct trainer_progress *now);
void talker_say(void *self, const char *text);

#endif
