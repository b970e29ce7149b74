// What the parts of the checkpointer share: checkpointer.c (its thread and jobs),
// checkpointer_weights.c (the first weights), checkpointer_model.c (tests and saves the model),
// checkpointer_parts.c (has the parameter servers save it), checkpointer_drop.c (and remove what is
// not needed any more).
// Only the checkpointer's thread calls the functions.
#ifndef ADAM_ROLE_CONTROLLER_CHECKPOINTER_INTERNAL_H
#define ADAM_ROLE_CONTROLLER_CHECKPOINTER_INTERNAL_H

#include <pthread.h>

#include "remote/data_servers.h"
#include "remote/servers_client.h"
#include "role/controller/checkpointer.h"
#include "run/best.h"
#include "run/checkpoint.h"
#include "run/checkpoint_parts.h"
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
    struct exchange *pull;
    struct shard_stamp *stamps,
        *state_stamps; // of the copy: weights, and one state behind the other
    struct feed *feed;
    struct data_servers_data data;
    uint64_t saved; // clock of the last checkpoint
    json_t *places; // its cursors; NULL: not known
    bool ever_saved;
    struct best best;  // of the checkpoints that were tested as they were saved
    uint64_t compared; // clock of the last of these
    bool improved;     // what the job in hand has tested is the best
};

// A line for the user.
void checkpointer_say(struct checkpointer *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// A line of metrics. Takes over the reference to `fields`.
void checkpointer_report(struct checkpointer *s, const char *event, json_t *fields);
struct proto_hello checkpointer_hello(const struct checkpointer *s);
// The data servers, without those that the job says are absent.
struct data_servers checkpointer_data_servers(const struct checkpointer *s);

enum { CHECKPOINTER_PATIENCE = 10000 }; // milliseconds for a dial

// Frees the copy of the weights: it is there only while a job needs it.
void checkpointer_drop_copy(struct checkpointer *s);
// Stores the first weights on the parameter servers: new ones, or those of the checkpoint that
// the run goes on from. STATUS_DATA when that has another model; statuses of exchange_wait.
int checkpointer_initialise(struct checkpointer *s, struct error *err);

// Asks the data servers for their place, which the checkpoint will have. Comes before the weights
// are looked at. Statuses of data_servers_cursors.
int checkpointer_take_place(struct checkpointer *s, struct error *err);
// Pulls the weights, if the job needs them here. STATUS_DIVERGED when they are not finite; statuses
// of exchange_wait.
int checkpointer_take_copy(struct checkpointer *s, struct error *err);
// What is in `stamps` now is what a checkpoint will have.
int checkpointer_take_versions(struct checkpointer *s, struct error *err);
// Tests the copy. STATUS_STOPPED when the checkpointer stops meanwhile.
int checkpointer_test(struct checkpointer *s, struct error *err);
// What is about to be saved, at the checkpoint's clock, tells which checkpoint is the best.
// STATUS_IO: out of memory.
int checkpointer_name_best(struct checkpointer *s, struct error *err);
// Saves the copy, unless it is saved already, or has the servers save what they hold. Statuses of
// checkpoint_save and checkpointer_save_parts.
int checkpointer_save(struct checkpointer *s, struct error *err);
// A checkpoint in parts. STATUS_UNAVAILABLE: a server does not answer; STATUS_DIVERGED: a weight is
// not finite; STATUS_STOPPED when the checkpointer stops meanwhile; those of checkpoint_draft_save.
int checkpointer_save_parts(struct checkpointer *s, struct error *err);
// Checkpoints of the run's folder that have their parts with servers; items are to be freed with
// free(). STATUS_IO: out of memory.
struct own_parts {
    struct checkpoint_own *items;
    size_t count;
};
int checkpointer_list_own(const struct checkpointer *s, struct own_parts *own, struct error *err);
// Those that were there before a checkpoint was made, and are no more: the servers remove their
// parts, as far as they are there.
void checkpointer_drop_parts(struct checkpointer *s, const struct own_parts *before);
// Writes RUN/DONE.
int checkpointer_finish(struct checkpointer *s, struct error *err);

#endif
