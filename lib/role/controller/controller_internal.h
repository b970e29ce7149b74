// What the parts of the controller share: controller.c (life),
// controller_stages.c (how far the run is), controller_answers.c (requests), controller_open.c
// (where the run stands at the start), controller_data.c (data servers that are away),
// controller_idle.c (why nothing is trained). All of it belongs to the controller's thread, but the
// inbox.
#ifndef ADAM_ROLE_CONTROLLER_CONTROLLER_INTERNAL_H
#define ADAM_ROLE_CONTROLLER_CONTROLLER_INTERNAL_H

#include "cluster/cluster.h"
#include "cluster/record.h"
#include "cluster/vitals.h"
#include "member/patience.h"
#include "net/http.h"
#include "net/link.h"
#include "remote/data_servers.h"
#include "role/controller/checkpointer.h"
#include "role/controller/controller.h"
#include "role/controller/inbox.h"

struct controller {
    const struct controller_config *config;
    struct gate gate;     // something came, or a job is over
    pthread_mutex_t talk; // of the hooks say and progress: the checkpointer talk, too
    struct inbox inbox;
    struct listener *listener;
    struct http *http; // NULL: none
    double page_due;   // clock_seconds of its next page
    struct record *record;
    struct cluster cluster;
    struct vitals vitals;
    struct metrics *metrics;
    struct checkpointer *checkpointer;
    struct proto_id run; // as the cluster has it; for threads of the network
    uint64_t model_hash;
    size_t parameters;
    struct ready port, told; // RUN/controller.port, and what the user wanted
    char *port_file;
    char *resume; // the checkpoint that gives the first weights; NULL: none

    struct settings settings; // as they are now
    char *settings_text;      // that their texts point into

    bool attached;          // the checkpointer know the data servers
    uint64_t epoch_samples; // of all data servers; 0: not known yet
    double tested, saved;   // epochs of the last test and checkpoint
    double ended;           // epoch at which its end was decided on; 0: it goes on
    double saved_at;        // clock_seconds of the last checkpoint
    double retry;           // clock_seconds before which a job that failed is not repeated
    double top1;            // below 0: not tested yet
    uint64_t clock;         // of the last copy
    bool stop_wanted, stop_now, diverged;
    char diverging[128];           // who first told that it `diverged`
    uint64_t impostors;            // requests in the name of another's session
    struct letter *saves, *saving; // who waits for a checkpoint: the next, the one under way
    double stage_began;            // clock_seconds
    struct patience patience;
    char waits_for[PROTO_ADDRESS_MAX];
    char trouble[PROTO_ADDRESS_MAX]; // why a job that the run needs must be tried again; "": none
    uint64_t told_routes;            // epoch of the routes that the checkpointer have
    uint64_t attached_routes;        // the same, when the data servers were asked last
    double stepped;                  // clock_seconds of the last look at what is due
    double accounted;               // epochs of which it was told what they left out; NAN: none yet
    double trained_at, longest_gap; // when a worker had trained; seconds between two of these
    double idle_since, idle_told; // nothing is trained since; for so many seconds, when it was said
};

void controller_say(struct controller *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Makes the state as it is now the one that was agreed on. Before it returned nothing of
// it is told to anybody.
int controller_agree(struct controller *c, struct error *err);
int controller_enter(struct controller *c, enum cluster_stage stage, struct error *err);
// The run ends, and this is why.
int controller_end(struct controller *c, int status, enum cluster_stage stage, const char *why,
                   struct error *err);
// The checkpointer hears of new routes.
int controller_tell_routes(struct controller *c, struct error *err);
// Whom the run waits for, and says so after a while.
void controller_look_for_waits(struct controller *c);
// What became of the checkpointer' job, when it is over.
int controller_take_result(struct controller *c, struct error *err);
// What is due in this stage, up to the beginning of the next.
int controller_stay(struct controller *c, struct error *err);
// Those who wait for a checkpoint hear of it, or `why` there is none.
void controller_answer_saves(struct letter **waiting, const struct checkpointer_result *result,
                             const char *why);
// Whether all data servers have told that their last epoch is over.
bool controller_is_finished(const struct controller *c);
// All members have a new silence to be allowed: this controller was away itself.
void controller_hear_all(struct controller *c);

// controller_data.c
// Of all epochs, finished.
uint64_t controller_samples(const struct controller *c);
// The share of the data that the run goes on without.
double controller_left_out(const struct controller *c);
// Whether the member, of the controller `self`, is gone, silent or has hung up.
bool controller_is_absent(const void *self, const struct cluster_member *member);
// The parts of the data whose servers cannot be asked, to be freed with free(); NULL when out of
// memory.
struct data_servers_part *controller_absent(const struct controller *c, size_t *count);
// The data server that the run waits for; false: none.
bool controller_waits_for_data(const struct controller *c, char text[PROTO_ADDRESS_MAX]);
// Waits for data servers that are away, or does what on-data-loss says.
int controller_look_at_data(struct controller *c, struct error *err);
// A line of metrics for each epoch that ended without a part of the data.
void controller_account(struct controller *c);
// The data server of this number has joined, and has this part; NULL: a new one. Pointers to
// members are good no more.
int controller_take_part(struct controller *c, struct cluster_part *part, uint32_t number,
                         struct error *err);
// A line of metrics of the controller's own. Takes over the reference to `fields`.
void controller_report(struct controller *c, const char *event, json_t *fields);

// controller_idle.c
// A worker has trained.
void controller_trained(struct controller *c);
// Seconds for which nothing was trained although there is work; 0: that is not so.
double controller_idle(const struct controller *c);
// Says so, and writes it to the metrics.
void controller_look_for_idleness(struct controller *c);

// That are wanted.
double controller_epochs(const struct controller *c);
// Epochs that are done, with the part of the present one, as the data servers told; once the
// end was decided on not fewer than then, though they leave.
double controller_epoch(const struct controller *c);
// The settings of this text, which it copies.
int controller_settle(struct controller *c, const char *text, struct error *err);
// The routes as this member may see them: NULL is the controller itself. Free with
// kept_drop.
int controller_routes(struct controller *c, const struct cluster_member *member,
                      struct kept **routes, struct error *err);
// Whether it is a worker that does not train during the warm start. Nobody waits for its
// turn: servers are told that it waits.
bool controller_withholds(const struct controller *c, const struct cluster_member *member);
uint64_t controller_routes_epoch(const struct controller *c, const struct cluster_member *member);
// How all are doing; the members that it points to are to be freed with free(). NULL when
// out of memory.
struct proto_member *controller_status(const struct controller *c, struct proto_status *status);
// Answers one request. An error is the controller's end: it could not write its state.
int controller_answer(struct controller *c, struct letter *letter, struct error *err);
// The path of the newest checkpoint; without one that of the run's folder, and false.
bool controller_latest(const struct controller *c, char path[512]);
// Whether the run's folder holds a file of this name.
bool controller_has(const struct controller *c, const char *name);
// Where the run stands: a new one, one whose controller was killed, one that goes on.
int controller_open_run(struct controller *c, struct error *err);

#endif
