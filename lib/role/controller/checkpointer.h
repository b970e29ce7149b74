// Tests and saves the model for the controller: "Statistics Server [...] receives the
// training error from each learner and receives the model from the parameter server at
// the end of each epoch and tests the model." (Rudra 3.1) It also gives the parameter servers
// their first weights, and writes the checkpoints.
//
// Threads: one of its own carries out one job after the other, and waits for the network
// as long as it takes. Call the functions from one thread, the controller's. They never
// wait, except checkpointer_close.
#ifndef ADAM_ROLE_CONTROLLER_CHECKPOINTER_H
#define ADAM_ROLE_CONTROLLER_CHECKPOINTER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/gate.h"
#include "proto/kept.h"
#include "remote/data_servers.h"
#include "run/best.h"
#include "run/metrics.h"

struct checkpointer;
struct secrets; // net/secrets.h

struct checkpointer_config { // what it points to outlives it, but for `resume` and the model
    const char *folder;      // of the run
    const char *command;     // for the record
    const char *resume;      // checkpoint with the first weights; NULL: as model_init has them
    const char *model_name, *model;
    struct proto_id run;
    uint64_t model_hash;
    const struct secrets *keys;
    bool insecure;
    struct metrics *metrics;
    struct gate *gate; // opened when a job is over
    void *self;        // of say, a line for the user, which its thread calls
    void (*say)(void *self, const char *text);
};

struct checkpointer_job {
    bool attach;     // the first job of all: ask the data servers, open the test set
    bool initialise; // with it: the servers get their first weights
    bool test, save; // on a copy of the weights as they are now
    bool done;       // all epochs are over: write RUN/DONE
    bool last;       // the job with which the run has saved itself, for the caller
    struct data_servers_part *absent; // data servers that do not answer; taken over
    size_t absent_count;
    uint64_t skipped; // samples before the data servers' places that were left out
    uint64_t buckets; // with initialise: the epoch of who has which, for the caller
};

struct checkpointer_result {
    struct checkpointer_job job;
    struct error err; // status: how it ended
    bool hopeless;    // it ended so for good, whatever the status: a part of what it goes on from
                      // is not where it was
    uint64_t samples; // of an epoch
    struct data_servers_gap gap; // what of the data is in none
    uint64_t skipped;            // with initialise: the checkpoint's, as in the job
    uint64_t clock;              // of the copy
    double epoch;
    struct best last; // test; {0}: none yet
    struct best best; // of all tests
    uint64_t bytes;   // of the checkpoint
    char path[1024];  // of it; "": none
};

int checkpointer_open(struct checkpointer **out, const struct checkpointer_config *config,
                      struct error *err);
// Ends the job under way.
void checkpointer_close(struct checkpointer *s);

// Gives it the routes that apply from now on.
void checkpointer_route(struct checkpointer *s, struct kept *routes);
// Begins a job with these settings, whose text it copies. False when one is under way, or memory
// is out; the caller then still owns `absent`.
bool checkpointer_begin(struct checkpointer *s, const struct checkpointer_job *job,
                        const char *settings);
bool checkpointer_busy(const struct checkpointer *s);
// Takes the result of the job that is over; false: there is none.
bool checkpointer_take(struct checkpointer *s, struct checkpointer_result *result);
// Ends the job under way, and begins no more: a parameter server is lost.
void checkpointer_stop(struct checkpointer *s);

#endif
