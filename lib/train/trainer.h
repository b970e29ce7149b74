// A training run on this machine, from its data to RUN/DONE: training in
// stretches, between which it evaluates and saves.
#ifndef ADAM_TRAIN_TRAINER_H
#define ADAM_TRAIN_TRAINER_H

#include "run/checkpoint.h"
#include "run/settings.h"
#include "sample/source.h"

struct error;

// PAUSE: the director has a change. STOP saves all, QUIT nothing.
enum trainer_wish { TRAINER_GO_ON, TRAINER_PAUSE, TRAINER_SAVE, TRAINER_STOP, TRAINER_QUIT };

struct trainer_progress {
    double epoch, epochs; // epochs 0: not known
    uint64_t samples;     // trained on so far
    uint64_t clock;       // mini-batches
    double rate;
    double loss; // mean of late
    double samples_per_s;
    double waiting;      // share of the threads' time, 0..1
    double seconds_left; // below 0: not known
    const char *doing;   // NULL: training; else "testing" or "saving"
    int partition;       // of the model, whose worker hears of mini-batches from the first one, and
                         // knows no epoch, rate and loss; 0: it has samples
};

// How a run talks with its caller; called by the thread that runs it.
struct trainer_hooks {
    void *self;
    enum trainer_wish (*wish)(void *self); // asked ten times a second
    void (*progress)(void *self, const struct trainer_progress *progress); // the same
    void (*say)(void *self, const char *text);                             // a line for the user
};

// Who changes settings meanwhile, and must know when all is saved; called by the same thread.
struct trainer_director {
    void *self;
    // The folder of the run is this process's own, and training begins.
    void (*begun)(void *self);
    // Between two mini-batches, while no thread trains: changes the settings, whose texts are
    // valid until changed() returns. False: there is nothing to change, or nothing more.
    bool (*change)(void *self, struct settings *settings);
    // They apply from the next mini-batch on, or `refused` says why nothing has changed.
    void (*changed)(void *self, const struct error *refused);
    // The weights as they are now are in the checkpoint at `path`, on the disk.
    void (*saved)(void *self, const char *path, uint64_t clock);
};

struct trainer_config {
    struct settings settings;
    // A fresh run: model, seed and run are filled in. A resumed one: as loaded,
    // with its optimizer's state. Taken over by trainer_run, also on failure.
    struct checkpoint checkpoint;
    bool resumed;
    bool weigh; // its classes get the weights that the settings say, and not those that it has
    const char *folder;  // of a fresh run: made, and emptied of an earlier one; stays the caller's
    const char *command; // the command line, for the record
    struct trainer_hooks hooks;
    struct source_hooks data;                // while data sets are read
    const struct trainer_director *director; // NULL: nobody
};

// STATUS_OK when all epochs are done, STATUS_STOPPED when TRAINER_STOP was wished and
// all is saved, or TRAINER_QUIT, STATUS_DIVERGED, or another status when something failed; err
// then says what, and which checkpoint is the last good one.
int trainer_run(struct trainer_config *config, struct error *err);

#endif
