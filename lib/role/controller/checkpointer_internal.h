// What the parts of the checkpointer share: checkpointer.c (its thread and jobs),
// checkpointer_weights.c (the first weights), checkpointer_model.c (tests and saves the model).
// Only the checkpointer's thread calls the functions.
#ifndef ADAM_ROLE_CONTROLLER_CHECKPOINTER_INTERNAL_H
#define ADAM_ROLE_CONTROLLER_CHECKPOINTER_INTERNAL_H

#include <pthread.h>

#include "remote/data_servers.h"
#include "remote/servers_client.h"
#include "role/controller/checkpointer.h"
#include "run/checkpoint.h"
#include "train/feed.h"

struct error;

struct checkpointer {
    struct checkpointer_config config;
    pthread_t thread;
    bool started;
    struct gate gate; // a job is there, or it is to end
    _Atomic bool busy, begun, over, stopping;
    _Atomic(struct kept *) routes; // newest; the thread takes it
    struct checkpointer_job job;
    char *text; // of the job's settings
    struct checkpointer_result result;
    char *resume; // as configured

    // The thread's own.
    struct settings settings;
    struct checkpoint checkpoint;
    struct kept *known; // routes
    struct servers *servers;
    struct exchange *pull, *store;
    uint64_t *versions, *state_versions; // of the copy
    struct feed *feed;
    struct data_servers_data data;
    uint64_t saved; // clock of the last checkpoint
    bool ever_saved;
};

// A line for the user.
void checkpointer_say(struct checkpointer *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// A line of metrics. Takes over the reference to `fields`.
void checkpointer_report(struct checkpointer *s, const char *event, json_t *fields);
struct proto_hello checkpointer_hello(const struct checkpointer *s);
// The data servers, without those that the job says are absent.
struct data_servers checkpointer_data_servers(const struct checkpointer *s);

// Memory for the weights and the optimizer's state. STATUS_IO.
int checkpointer_make_room(struct checkpointer *s, struct error *err);
// Stores the first weights on the parameter servers: new ones, or those of the checkpoint that
// the run goes on from. STATUS_DATA when that has another model; statuses of exchange_wait.
int checkpointer_initialise(struct checkpointer *s, struct error *err);

// Pulls the weights and asks the data servers for their place. STATUS_DIVERGED when the weights
// are not finite; statuses of exchange_wait and data_servers_cursors.
int checkpointer_take_copy(struct checkpointer *s, struct error *err);
// Tests the copy. STATUS_STOPPED when the checkpointer stops meanwhile.
int checkpointer_test(struct checkpointer *s, struct error *err);
// Saves the copy, unless it is saved already. Statuses of checkpoint_save.
int checkpointer_save(struct checkpointer *s, struct error *err);
// Writes RUN/DONE.
int checkpointer_finish(struct checkpointer *s, struct error *err);

#endif
