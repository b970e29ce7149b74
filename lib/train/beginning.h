// RUN/start.json: what a run began with, for one that ends before its first checkpoint. It then
// begins anew.
#ifndef ADAM_TRAIN_BEGINNING_H
#define ADAM_TRAIN_BEGINNING_H

#include "run/checkpoint.h"

struct error;

// Whether only this is left of a run: it was killed before it had saved a checkpoint.
bool beginning_only(const char *run);

// Of the checkpoint: the model, its seed, what it records of the run, and the command line.
// STATUS_CANTCREATE, STATUS_IO.
int beginning_write(const struct checkpoint *checkpoint, const char *run, struct error *err);

// Fills in the same, without parameters, and `directory`. `sets` are applied to the model's text.
// STATUS_NOINPUT, STATUS_DATA.
int beginning_read(struct checkpoint *checkpoint, const char *run, const char *const *sets,
                   size_t set_count, struct error *err);

#endif
