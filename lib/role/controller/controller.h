// The controller of a run keeps its members, decides which server has which part of the
// parameters, leads the run through its stages, and ends it. It writes RUN/metrics.jsonl, the
// checkpoints (role/controller/checkpointer.h), RUN/DONE, and the agreed state
// RUN/controller.state (cluster/agreed.h), from which it goes on after it was killed.
//
//   starting   until the parameter servers and data servers that the settings want are
//              there; then they get the first weights
//   training   workers come and go
//   draining   all epochs are over, or the run is to stop: workers push what they hold
//   saving     the last test and checkpoint
//   stopping   all others leave
//
// A run has one controller, or three or five of which one leads: "a set of parameter server (PS)
// controller machines that form a Paxos cluster" (Adam 3.3.3). The others stand by. They refuse
// what they are asked, and name the leader. When a majority of them does not hear the leader,
// another leads within 2 s, from the state that was agreed on, as a controller does that was
// started again.
//
// Threads: one answers all requests in the order in which they came, so that the state
// needs no locks; it waits for nothing else but the agreement of the others. Threads of the network
// fill its queue. The checkpointer has its own thread, and so has the quorum
// (role/controller/quorum.h).
#ifndef ADAM_ROLE_CONTROLLER_CONTROLLER_H
#define ADAM_ROLE_CONTROLLER_CONTROLLER_H

#include <stdbool.h>

#include "net/ready.h"
#include "run/run_file.h"
#include "train/trainer.h"

struct error;

struct secrets; // net/secrets.h

// Milliseconds.
#define CONTROLLER_HEARTBEAT 500
// For so long a parameter server may serve as a primary without asking again.
#define CONTROLLER_LEASE 1000
// Of one whose end closed the connection: it died, or dials again at once.
#define CONTROLLER_REDIAL 5000

struct controller_config { // what it points to outlives the call
    const struct run_file *file;
    const char *folder;           // of the run
    const char *resume;           // what to go on from: a run or a checkpoint; NULL
    const char *listen;           // of a controller alone; NULL: a Unix socket
    const char *const *addresses; // of several: where each of them listens, this one too
    uint32_t controllers, id;     // how many: 1, 3 or 5; which of them this is, from 0
    bool rejoin;                  // it lost its record, and is to become a member anew
    const char *http;             // HOST:PORT of /metrics; NULL: none
    const char *command;          // for the record
    const struct secrets *keys;
    bool insecure;
    struct ready ready; // beside RUN/controller.port
    struct trainer_hooks hooks;
};

// Whether they describe a run of many processes that can begin. STATUS_USAGE.
int controller_check_settings(const struct settings *settings, struct error *err);

// Runs it to the run's end, whoever leads then: STATUS_OK when all epochs are done, STATUS_STOPPED
// when it was told to stop and all is saved, STATUS_DIVERGED, STATUS_UNAVAILABLE when it lost what
// it cannot do without (the text names it), or another status when something failed. STATUS_STOPPED
// also when this controller was told to stop while it stood by: the run goes on without it.
int controller_run(const struct controller_config *config, struct error *err);

#endif
