// A worker of a run of many processes: it joins the controller's run, takes samples from
// the data servers and keeps its parameters on the parameter servers
// (remote/home_servers.h), until the run is over or its user stops it.
//
// Where the run cuts its model (model/cut.h), it has one partition of it, and trains when workers
// for the others are there.
//
// Threads: worker_run is the owner's, and calls `progress`; it returns when all others have
// ended: the training threads, one that looks after what the controller says and calls
// `wish`, and those of the member, of the clients and of the home. `say` may be called by
// any of these, one at a time.
#ifndef ADAM_ROLE_WORKER_WORKER_H
#define ADAM_ROLE_WORKER_WORKER_H

#include "net/secrets.h"
#include "train/trainer.h"

struct error;

struct worker_options {     // texts outlive the run
    const char *controller; // its address, or @FILE
    const char *name;       // for people
    const char *command;    // the command line, for the record
    const char *listen;     // where other workers of its replica reach it; NULL: it has none
    const struct secrets *keys;
    bool insecure;
    int threads;                // 0: as the run says, or as there are processors
    struct trainer_hooks hooks; // TRAINER_SAVE means nothing here: the controller saves
};

// A worker whose session is over since it was silent for too long, or whose pushes are
// refused since another pushes in its name, says so and joins anew.
//
// STATUS_OK when the controller said that the run is over, STATUS_STOPPED when TRAINER_STOP was
// wished, both with everything that was trained on pushed, or when it came as the run ended;
// STATUS_DIVERGED when a loss or an update was not finite, which no server has applied;
// STATUS_UNAVAILABLE when the run cannot go on; STATUS_DATA when its model, its settings or
// its samples make no sense.
int worker_run(const struct worker_options *options, struct error *err);

#endif
