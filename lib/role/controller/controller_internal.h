// What the parts of a controller that leads share: controller.c (from when it leads until it does
// no more), controller_run.c (when that is), controller_stages.c (the stages of the run),
// controller_routes.c (which servers there are), controller_silence.c (members that are silent),
// controller_answers.c (requests; of these controller_members.c has what members tell of
// themselves, controller_status.c what there is to know), controller_open.c (the run at the start),
// controller_return.c (the same where its members may be gone), controller_data.c (data servers
// that are away), controller_idle.c (why nothing is trained), controller_places.c (who has which
// copies), controller_losses.c and controller_drain.c (parameter servers that are gone, or to be
// switched off), controller_stores.c (those that come back). Only the controller's thread uses it.
#ifndef ADAM_ROLE_CONTROLLER_CONTROLLER_INTERNAL_H
#define ADAM_ROLE_CONTROLLER_CONTROLLER_INTERNAL_H

#include "cluster/agreed.h"
#include "cluster/progress.h"
#include "cluster/vitals.h"
#include "member/patience.h"
#include "net/link.h"
#include "remote/data_servers.h"
#include "role/controller/checkpointer.h"
#include "role/controller/controller.h"
#include "role/controller/doors.h"
#include "role/request_queue.h"

struct error;

struct controller {
    const struct controller_config *config;
    struct doors *doors;
    double page_due; // clock_seconds of the next page of /metrics
    struct agreed agreed;
    const struct cluster *cluster; // agreed.state; controller_commit changes it
    struct part_progress progress; // of its parts, since it was agreed
    struct vitals vitals;
    struct partings partings; // of parameter servers
    struct metrics *metrics;
    struct checkpointer *checkpointer;
    uint64_t model_hash;
    size_t parameters;

    struct settings settings; // as they are now
    char *settings_text;      // that their texts point into

    bool attached;               // the checkpointer knows the data servers
    uint64_t epoch_samples;      // of all data servers; 0: not known yet
    struct data_servers_gap gap; // what of the data none of them had when they were asked
    double gap_since;            // clock_seconds; 0: there is none
    double tested, saved;        // epochs of the last test and checkpoint
    double ended;                // epoch at which the end of the run was agreed; 0: it goes on
    double saved_at;             // clock_seconds of the last checkpoint
    double retry;                // clock_seconds before which a job that failed is not tried again
    uint64_t clock;              // of the last copy
    bool stop_wanted, stop_now, diverged;
    bool all_left;                    // nobody is left of a run that is stopping
    char diverging[128];              // the member that first reported that it `diverged`
    uint64_t impostors;               // requests with the session of another member
    struct queued_request *proposals; // of parameter servers
    struct queued_request *stops;     // to be answered when the end is agreed on
    struct queued_request *saves,
        *saving;         // requests for the next checkpoint, and for the one under way
    double asked_again;  // clock_seconds; until then servers may not have asked for leases
    uint64_t agreements; // of the controllers, since then
    double began;        // clock_seconds when it began to lead
    double inherited;    // clock_seconds after which no other controller gave leases
    uint64_t placed_members, placed_routes; // epochs for which copies were looked at last
    double placed_at;                       // clock_seconds
    double stage_began;                     // clock_seconds
    double lost_since; // clock_seconds; that a parameter server is gone with its shards; 0: none
    struct patience patience;
    char waits_for[PROTO_ADDRESS_MAX];
    char trouble[PROTO_ADDRESS_MAX]; // why a job that the run needs must be tried again; "": none
    uint64_t told_routes;            // epoch of the routes that the checkpointer has
    uint64_t attached_routes;        // the same, when the data servers were asked last
    // clock_seconds when this step began. Silence of others is measured up to then: in the middle
    // of a step this controller may stand still itself.
    double stepped;
    double accounted;               // epochs of which it was told what they left out; NAN: none yet
    double trained_at, longest_gap; // when a worker had trained; seconds between two of these
    double idle_since, idle_told; // nothing is trained since; for so many seconds, when it was said
};

void controller_say(struct controller *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Every change of the state: a draft, transitions on it, controller_commit; then what follows from
// it (log lines, answers, vitals). The draft has the epochs that data servers reported last. An
// error means that nothing changed; it is the controller's end.
int controller_draft(const struct controller *c, struct cluster **next, struct error *err);
// As agreed_commit. Pointers into the state, as to members, are valid until then.
int controller_commit(struct controller *c, struct cluster *next, int status, struct error *err);
// The run enters this stage.
int controller_enter(struct controller *c, enum cluster_stage stage, struct error *err);
// The run ends with this status for this reason, and enters `stage`.
int controller_end(struct controller *c, int status, enum cluster_stage stage, const char *why,
                   struct error *err);
// The same, at once: the job that the checkpointer is at ends, too.
int controller_end_at_once(struct controller *c, int status, const char *why, struct error *err);
// Finds out what the run waits for; says so after a while.
void controller_look_for_waits(struct controller *c);
// Takes the result of the checkpointer's job, if it is over.
int controller_take_result(struct controller *c, struct error *err);
// Does what is due in this stage, and enters the next when it is over.
int controller_stay(struct controller *c, struct error *err);
// Answers those who asked for the end of the run, once that is agreed on.
void controller_answer_stops(struct controller *c);
// Answers requests for a checkpoint: with the result, or with a refusal and `why`.
void controller_answer_saves(struct queued_request **waiting,
                             const struct checkpointer_result *result, const char *why);
// Whether all data servers have reported that their last epoch is over.
bool controller_is_finished(const struct controller *c);
// Counts the silence of all members, and all waiting for some, from now: this controller was away
// itself.
void controller_hear_all(struct controller *c);

// controller_routes.c
//
// The routes as this member may see them: NULL is the controller itself. Free with
// kept_drop.
int controller_routes(struct controller *c, const struct cluster_member *member,
                      struct kept **routes, struct error *err);
// Whether it is a worker that does not train during the warm start. Servers hear that it waits, so
// that they do not wait for its pushes.
bool controller_withholds(const struct controller *c, const struct cluster_member *member);
// The epoch of those that it may see; 0: none.
uint64_t controller_routes_epoch(const struct controller *c, const struct cluster_member *member);
// Gives new routes to the checkpointer.
int controller_tell_routes(struct controller *c, struct error *err);

// controller_silence.c
//
// Waits for members that are silent and are needed, and gives up the others, and those that were
// waited for too long.
int controller_check_silence(struct controller *c, struct error *err);
// Ends the run where a part of the weights is lost with the last server that had it.
int controller_check_servers(struct controller *c, struct error *err);
// The other workers of its replica are gone with it.
void controller_tell_broken(struct controller *c, const struct cluster_member *lost);

// controller_places.c
//
// All buckets, unless the asker knows them, and a lease for a parameter server (NULL: others).
void controller_places(struct controller *c, const struct cluster_member *server, uint64_t known,
                       struct proto_places *places);
// Whether the run can go on without this parameter server: others that are heard have its buckets.
int controller_may_lose(const struct controller *c, uint32_t server, bool *may, struct error *err);
// Whether some buckets are on servers that are gone.
bool controller_lacks_servers(const struct controller *c);
// Gives copies to buckets that have too few, in the draft.
int controller_fill(const struct controller *c, struct cluster *next, struct error *err);
// Gives the places of servers that are gone to others, carries out what may be of parameter
// servers' proposals, and gives copies to buckets that have too few: the first of these that there
// is something for, as whoever asks what was agreed on should not wait for more. Call it when all
// that came was answered: a lease that was asked for in time is known by then.
int controller_place(struct controller *c, struct error *err);

// controller_losses.c
//
// The places of a server that is gone go to others that have the buckets, and are heard: of one at
// a time.
int controller_lose_gone(struct controller *c, struct error *err);
// Of primaries that were silent, and are none in the draft: "ps-1 is silent: ps-2 is the primary of
// 341 buckets now, ps-3 of 170". Free it with free(); NULL when out of memory.
char *controller_takeovers(const struct cluster *cluster, const struct cluster *next);
// Writes to the metrics that a member is gone, if it is a parameter server that was not drained.
void controller_tell_loss(struct controller *c, const struct cluster_member *member);

// controller_drain.c
//
// The buckets of the parameter server of this name move away from now on. *code: why that is
// refused, with the reason in words; or none.
int controller_drain(struct controller *c, const char *name, enum proto_refusal *code,
                     char why[512], struct error *err);
// Says, and writes to the metrics, which of those servers have no bucket any more.
void controller_look_at_drains(struct controller *c);

// controller_stores.c
// A cluster_absent: whether the parameter server is absent, or was not heard of since this
// controller leads: what it was before says nothing of whether its values are still there.
bool controller_is_unheard(const void *self, const struct cluster_member *member);
// Whether it is known of each bucket of this server if another that has it lives, and so has what
// is newer than a store: a controller that has just begun to lead must hear them, or their silence,
// before one returns with its store.
bool controller_knows_others(const struct controller *c, uint32_t server);
// Whether the run can go on when this parameter server comes back with its store.
bool controller_can_return(const struct controller *c, const struct cluster_member *server);
// Whether the run waits for a parameter server that is gone to come back with its store.
bool controller_waits_for_store(struct controller *c, const struct cluster_member *lost);
// A flag for each bucket: whether the store of the joining server lacks values of it. For free();
// NULL when out of memory.
bool *controller_lacks(const struct controller *c, const struct proto_join *join);
// The server whose shards the joining one has in its store: it takes them over. *alive: that one is
// there still. NULL: none.
const struct cluster_member *controller_returning(const struct controller *c,
                                                  const struct proto_join *join, bool *alive);

// controller_return.c
// Where none of the members answers any more, all died at once: they are gone, and those that come
// back join anew, at once. For a controller that is back itself.
int controller_let_dead_go(struct controller *c, struct error *err);
// Whether a member is still there: it answers, or does not refuse, as one that stands still.
bool controller_member_lives(const struct controller *c, const struct cluster_member *member);

// controller_data.c
// Samples that are finished, of all epochs.
uint64_t controller_samples(const struct controller *c);
// How far a part of the present state is.
struct progress_part *controller_progress(const struct controller *c,
                                          const struct cluster_part *part);
// Whether all epochs of it are done, and none is under way.
bool controller_part_is_over(const struct controller *c, const struct cluster_part *part);
// The share of the data that is left out, 0...1.
double controller_left_out(const struct controller *c);
// A cluster_absent: whether the member of the controller `self` is gone, silent or has hung up.
bool controller_is_absent(const void *self, const struct cluster_member *member);
// The parts of the data whose servers cannot be asked, to be freed with free(); NULL when out of
// memory.
struct data_servers_part *controller_absent(const struct controller *c, size_t *count);
// Names the data server that the run waits for; false: none.
bool controller_waits_for_data(const struct controller *c, char text[PROTO_ADDRESS_MAX]);
// Samples of the data that are in no part; 0 before there are parts.
uint64_t controller_unserved(const struct controller *c);
// Before training begins: whether all of the data is served, or the run goes on without the rest.
bool controller_has_data(struct controller *c);
// Names the samples that nobody serves; false: there are none.
bool controller_waits_for_range(const struct controller *c, char text[PROTO_ADDRESS_MAX]);
// Says, and writes to the metrics, that training begins without some of the data.
void controller_tell_gap(struct controller *c);
// Waits for data servers that are away, or does what on-data-loss says.
int controller_look_at_data(struct controller *c, struct error *err);
// A line of metrics for each epoch that ended without a part of the data.
void controller_account(struct controller *c);
// Says, and writes to the metrics, that the data server of this number has joined and has the part
// that member `before` had (0: a new one); `back`: which was left out until then.
void controller_tell_part(struct controller *c, uint32_t before, uint32_t number, bool back);
// A line of metrics of the controller's own. Takes over the reference to `fields`.
void controller_report(struct controller *c, const char *event, json_t *fields);

// controller_idle.c
// Notes that a worker has trained.
void controller_trained(struct controller *c);
// Seconds since anything was trained, if there is work and that is too long; else 0.
double controller_idle(const struct controller *c);
// Says it, and writes it to the metrics.
void controller_look_for_idleness(struct controller *c);

// Number of epochs to train: those of the settings, or fewer, where patience ends the run.
double controller_epochs(const struct controller *c);
// Epochs that are done, with the fraction of the present one, as the data servers reported. Once
// the end of the run is agreed it never falls below what it was then, though they leave.
double controller_epoch(const struct controller *c);
// Has other settings agreed on: those that there are, and then these lines.
int controller_change(struct controller *c, const char *lines, struct error *err);
// Takes the settings of this text, which it copies.
int controller_settle(struct controller *c, const char *text, struct error *err);
// The figures of all members. Returns the members that `status` points to, for free(); NULL when
// out of memory.
struct proto_member *controller_status(const struct controller *c, struct proto_status *status);
// A request that was not carried out, since this controller ends or leads no more: who asked is
// told to ask again, and finds out. (Nobody closes the links of one that stands by.)
void controller_put_off(const struct queued_request *queued);
// The same for a list of such requests, which is empty then.
void controller_put_off_all(struct queued_request **waiting);
// Answers one request, and takes over the queued. An error is the controller's end: it could not
// write its state.
int controller_answer(struct controller *c, struct queued_request *queued, struct error *err);
// The path of the newest checkpoint; without one that of the run's folder, and false.
bool controller_latest(const struct controller *c, char path[512]);
// Whether the run's folder holds a file of this name.
bool controller_has(const struct controller *c, const char *name);
// Finds out what run it is: a new one, one whose controller is gone, or one that goes on.
int controller_open_run(struct controller *c, struct error *err);
// Leads the run from the state that is agreed on, until it is over (*over) or this controller leads
// no more, with STATUS_UNAVAILABLE. Statuses as controller_run.
int controller_lead(struct doors *doors, bool *over, struct error *err);
// Whether this controller is the only one.
bool controller_is_alone(const struct controller_config *config);
// Whether the file describes a run that can begin: a controller that stands by finds out at once.
int controller_check_file(const struct run_file *file, struct error *err);

#endif
