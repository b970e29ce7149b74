// A training run on this machine, from its data to RUN/DONE: training in
// stretches, between which it evaluates and saves.
#ifndef ADAM_TRAIN_RUN_H
#define ADAM_TRAIN_RUN_H

#include "sample/source.h"
#include "train/checkpoint.h"
#include "train/settings.h"

enum run_wish { RUN_GO_ON, RUN_SAVE, RUN_STOP };

struct run_progress {
    double epoch, epochs; // epochs 0: not known
    uint64_t samples;     // trained on so far
    double rate;
    double loss; // mean of late
    double samples_per_s;
    double waiting;      // share of the threads' time, 0..1
    double seconds_left; // below 0: not known
    const char *doing;   // NULL: training; else "testing" or "saving"
};

// How a run talks with its caller; called by the thread that runs it.
struct run_hooks {
    void *self;
    enum run_wish (*wish)(void *self);                                 // asked ten times a second
    void (*progress)(void *self, const struct run_progress *progress); // the same
    void (*say)(void *self, const char *text);                         // a line for the user
};

struct run_config {
    struct settings settings;
    // A fresh run: model, seed and run are filled in. A resumed one: as loaded,
    // with its optimizer's state. Taken over by run_train, also on failure.
    struct checkpoint checkpoint;
    bool resumed;
    const char *folder;  // of a fresh run: made, and emptied of an earlier one; stays the caller's
    const char *command; // the command line, for the record
    struct run_hooks hooks;
    struct source_hooks data; // while data sets are read
};

// STATUS_OK when all epochs are done, STATUS_STOPPED when RUN_STOP was wished and
// all is saved, STATUS_DIVERGED, or another status when something failed; err
// then says what, and which checkpoint is the last good one.
int run_train(struct run_config *config, struct error *err);

#endif
