// What the parts of a worker share. Inside lib/role/worker only.
#ifndef ADAM_ROLE_WORKER_WORKER_INTERNAL_H
#define ADAM_ROLE_WORKER_WORKER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/error.h"
#include "member/member.h"
#include "remote/data_client.h"
#include "remote/home_servers.h"
#include "remote/neighbour_links.h"
#include "role/worker/worker.h"
#include "rule/protocol.h"
#include "train/loop.h"

// Why it ends; the first reason counts.
enum worker_end {
    WORKER_GOES_ON,
    WORKER_OVER,    // the run is, says the controller
    WORKER_STOPPED, // the user wished so
    WORKER_FAILED,  // `failure` says why
};

// What it did since the last line of metrics.
struct worker_report {
    struct loop_sums sums;
    double seconds, waited; // of training; of that, all threads together, for servers
};

struct worker {
    struct worker_options options;
    struct member *member;
    // Of the run, as the controller has it.
    struct kept *run;
    char *settings_text; // in which the settings' texts lie
    struct settings settings;
    struct protocol protocol;
    enum protocol_push push;
    struct model *model;
    struct ops *input;
    struct optimizer optimizer;
    struct schedule schedule;
    const struct kernels *kernels;
    int threads;
    // Of its replica, where the model is cut.
    struct neighbour_links *links; // NULL: it does not listen
    struct cut *cut;               // NULL: the model is not
    struct portion portion;
    int partition;
    double lost_at; // the watching thread's: when it noticed that one of them is lost
    // Its parts.
    struct servers *servers;
    struct data_client *data;
    struct home_servers *home;
    struct loop *loop;
    struct pace pace;
    // What the watching thread and the owner's share.
    pthread_t watcher;
    bool watching;
    atomic_int end; // enum worker_end
    atomic_bool closing, training;
    pthread_mutex_t lock;      // of `failure`, `figures`, `waits_for`, and of the hook `say`
    pthread_mutex_t data_lock; // of `data`, for the home
    struct error failure;
    struct proto_heartbeat figures; // for the next heartbeat
    char waits_for[PROTO_ADDRESS_MAX];
    char told[PROTO_ADDRESS_MAX]; // the member's thread's: what the last heartbeat says of it
    // The owner's.
    uint64_t refused_before; // pushes that were refused in sessions before this one
    double begun;            // clock_seconds: training began
    struct worker_report reported;
    struct trainer_progress progress;
};

void worker_say(struct worker *worker, const char *text);
void worker_fail(struct worker *worker, const struct error *why);
bool worker_is_ending(struct worker *worker);
// Looked at in turns of a wait, before there is a watching thread: STATUS_OK unless the member has
// ended or the user wishes to stop, "stopped before it had joined". The run may be over, too.
#define WORKER_POLL 0.1 // seconds between two looks at what the caller wishes
int worker_wait_more(struct worker *worker, const char *before, struct error *err);

// worker_replica.c. Waits until all workers of its replica are there, or it is to end.
int worker_open_replica(struct worker *worker, struct error *err);
// After all that uses it.
void worker_close_replica(struct worker *worker);
bool worker_leads(const struct worker *worker);                // it takes the samples
const struct model *worker_model(const struct worker *worker); // what of it is trained here
// By the watching thread: it fails when one of the others is lost.
void worker_watch_replica(struct worker *worker);
// Whether the training threads may stand still.
bool worker_may_pause(struct worker *worker);

// worker_parts.c: each needs those before it, and the owner's thread opens and closes them; a
// part that was never opened may be closed.
struct proto_hello worker_hello(const struct worker *worker);
bool worker_is_sync(const struct worker *worker); // its threads share each mini-batch
int worker_open_servers(struct worker *worker, struct error *err);
int worker_open_home(struct worker *worker, struct error *err);
int worker_open_data(struct worker *worker, struct error *err); // of one that leads
int worker_open_loop(struct worker *worker, struct error *err); // the length of an epoch is known
// Before the home, which may be at work until it is closed, too.
void worker_close_data(struct worker *worker);

// worker_report.c: what it tells of itself. By the owner's thread, but worker_figures.
void worker_report_start(struct worker *worker);
// Progress, and the figures of the next heartbeat; a line of metrics when it is time, or
// with `last`.
void worker_report(struct worker *worker, bool last);
void worker_report_stop(struct worker *worker, int status, const struct error *err, double loss);
void worker_state(struct worker *worker, enum proto_state state);
// A hook of the member.
void worker_figures(void *self, struct proto_heartbeat *figures);

#endif
