// What the controllers of a run agree on: the members, which parameter server has which
// buckets, what is trained, and the stage of the run. "The controller maintains in its
// replicated state the configuration of parameter server cluster" (Adam 3.3.3). The Paxos
// register (cluster/paxos.h) holds it as JSON text.
//
// An agreed state never changes. The transitions below make the next state from a copy of it
// (cluster/agreed.h). Readers return const pointers into the state; transitions take the
// numbers of members. Pure: no clock, no files, no network. Call from one thread.
#ifndef ADAM_CLUSTER_CLUSTER_H
#define ADAM_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/partings.h"
#include "proto/proto.h"

struct error;

// "When a parameter server machine [...] buckets are distributed equally" (Adam 3.3.1):
// enough of them that each of many servers gets as much as any other.
#define CLUSTER_BUCKETS 1024
#define CLUSTER_MEMBERS_MAX 2000 // that live
#define CLUSTER_GONE_MAX 32      // remembered, for people
#define CLUSTER_PARTITIONS_MAX 64

// The stages of a run, S(NAME, name):
//
//   starting -> training -> draining -> saving -> stopping -> over
//
// From each stage before it a run may also go straight to stopping. It never goes back: a run
// that is resumed is a new state, which starts.
#define CLUSTER_STAGES(S)                                                                          \
    S(STARTING, "starting") /* waits for servers, and gives them the first weights */              \
    S(TRAINING, "training") /* workers join, train and leave */                                    \
    S(DRAINING, "draining") /* workers push what they hold, and leave */                           \
    S(SAVING, "saving")     /* the last test and checkpoint */                                     \
    S(STOPPING, "stopping") /* all members leave */                                                \
    S(OVER, "over")         /* nobody is left */

#define CLUSTER_AS_STAGE(NAME, name) CLUSTER_##NAME,
enum cluster_stage { CLUSTER_STAGES(CLUSTER_AS_STAGE) CLUSTER_STAGE_COUNT };

// What tells one data set from another. {0}: not known.
struct cluster_data {
    uint64_t whole; // samples
    uint32_t digest, classes;
};

struct cluster_member {
    uint32_t number;
    uint64_t session;
    enum proto_role role;
    uint32_t threads;
    uint64_t memory;
    uint64_t first, samples;  // of a data server: those that it serves
    struct cluster_data data; // of the same: of what they are
    bool gone;                // it left, or was silent for too long; its session is over
    bool draining;            // of a parameter server: its buckets move away
    bool left;                // of the same: they had, and it is gone for good
    bool stores;              // of the same: what it holds outlives it, under its name
    bool parts;               // of the same: it has a folder for parts of checkpoints
    uint32_t replica;   // of a worker: that it is of; where the model is not cut its own number
    uint32_t partition; // of the same: what it has of the model
    char name[PROTO_NAME_MAX + 1];
    char training[PROTO_ADDRESS_MAX + 1];
    char replication[PROTO_ADDRESS_MAX + 1];
    char administration[PROTO_ADDRESS_MAX + 1];
};

// The samples of one data server. A run has the parts that were there when training began, and
// those of data servers that joined later. A part stays while its data server is away: workers
// wait for it at the end of the epoch, unless it is left out.
struct cluster_part {
    uint64_t first, samples;
    uint32_t member; // that serves it, or served it last
    double epoch;    // epochs of it that were done when this was agreed (cluster/progress.h)
    bool out;        // the run goes on without it (on-data-loss=continue)
};

struct cluster {
    struct proto_id run;
    enum cluster_stage stage;
    bool warm;                            // the warm start is over, or none was wanted
    bool finished;                        // all epochs are done
    int status;                           // with which the run ends
    char *why;                            // reason of a status that is not STATUS_OK; else NULL
    uint64_t next_session, order;         // numbers; an order is raised with each stage
    uint32_t next_member;                 //
    uint64_t members_epoch, routes_epoch; // 0 of routes: none yet
    uint64_t settings_version;            //
    char *resume;                         // checkpoint that gives the first weights; NULL: none
    char *model_name, *model, *settings;  // texts of model (adam-model(5)) and settings
    struct cluster_member *members;       // in the order of joining
    size_t member_count;                  //
    uint32_t copies;                      // wanted of each bucket; to be set before cluster_assign
    uint32_t partitions;                  // of a replica, see below; to be set before any joins
    struct proto_place *places;           // of all buckets, in order; none yet: 0
    size_t place_count;                   //
    struct cluster_part *parts;           // of the data; before training begins: 0
    size_t part_count;                    //
    struct cluster_data data;             // that is trained on, of which the parts are
    uint64_t skipped; // samples in the parts' epochs that were left out: nothing trained on them
};

// A new run, which starts. Copies the texts (`resume` may be NULL). Call cluster_free also after
// a failure.
int cluster_open(struct cluster *cluster, struct proto_id run, const char *model_name,
                 const char *model, const char *settings, const char *resume, struct error *err);
// A copy that shares nothing with `from`. Call cluster_free also after a failure.
int cluster_copy(struct cluster *to, const struct cluster *from, struct error *err);
void cluster_free(struct cluster *cluster);
const char *cluster_stage_name(enum cluster_stage stage);

// JSON text, to be freed with free(); NULL when out of memory.
char *cluster_write(const struct cluster *cluster);
// STATUS_DATA for any text that is not such a state.
int cluster_read(struct cluster *cluster, const char *text, size_t size, struct error *err);

// --- reading ------------------------------------------------------------------------------

// The member with this session that is not gone, or NULL.
const struct cluster_member *cluster_find(const struct cluster *cluster, uint64_t session);
const struct cluster_member *cluster_numbered(const struct cluster *cluster, uint32_t number);
size_t cluster_count(const struct cluster *cluster, enum proto_role role); // not gone

// A parameter server that is gone, as are all others that have some bucket of it; NULL: none.
const struct cluster_member *cluster_lost(const struct cluster *cluster);
// The parameter server whose store one that asks to join has: it has buckets, and the same name. It
// may be gone. NULL: none.
const struct cluster_member *cluster_stored(const struct cluster *cluster,
                                            const struct proto_join *join);
// Whether the member has buckets, in whatever role.
bool cluster_serves(const struct cluster *cluster, uint32_t number);
// Whether each bucket of this parameter server has another member that is not absent
// (placement_may_lose).
typedef bool cluster_absent(const void *self, const struct cluster_member *member);
int cluster_may_lose(const struct cluster *cluster, uint32_t number, cluster_absent *absent,
                     const void *self, bool *may, struct error *err);
// *held: each bucket has a member that is not absent, which is asked once of each server. A cluster
// without buckets is.
int cluster_is_held(const struct cluster *cluster, cluster_absent *absent, const void *self,
                    bool *held, struct error *err);

// The part that this member serves, or served last; NULL: none.
const struct cluster_part *cluster_part_of(const struct cluster *cluster, uint32_t number);
// The first epoch for which workers still want samples of the part.
uint32_t cluster_part_epoch(const struct cluster *cluster, const struct cluster_part *part);
// Samples of all parts, or of those that are left out.
uint64_t cluster_samples(const struct cluster *cluster, bool out);
// Whether a data server that asks to join can have a part: one of its samples that nobody serves
// any more (*vacant), or a new one (NULL), none of whose samples is another's. `absent` tells
// whether a member is away.
bool cluster_vacant(const struct cluster *cluster, const struct proto_join *join,
                    cluster_absent *absent, const void *self, const struct cluster_part **vacant);
// Whether a data server that asks to join serves the data set that the run trains on. STATUS_DATA,
// with both in `err`, when it does not. Before there are parts, and of other roles: STATUS_OK.
int cluster_check_data(const struct cluster *cluster, const struct proto_join *join,
                       struct error *err);
// Takes over the epoch that a data server reports of its part, unless it is below the last whole
// one: a server that was started again has not begun to serve yet. True when one more whole epoch
// is done.
bool cluster_part_told(double *epoch, double told);

// Workers that have all partitions of a model between them (model/cut.h) are a replica of it: they
// train when all are there, and end together. Where the model is not cut each worker is one.
bool cluster_replica_whole(const struct cluster *cluster, uint32_t replica);
// Whether the others of its replica are gone with the member: they train. At the end of a run they
// leave one by one.
bool cluster_breaks_replica(const struct cluster *cluster, const struct cluster_member *member);

// --- transitions --------------------------------------------------------------------------

// A new member, with a session that was never used before. A member of the same role at the same
// address is gone: it was started again. A parameter server is draining if one of its name was
// drained, and has not left: it was started again, too. A worker has the first place that is free
// in a replica. STATUS_UNAVAILABLE when there are too many. The pointer is valid until the next
// transition.
int cluster_join(struct cluster *cluster, const struct proto_join *join,
                 const struct cluster_member **member, struct error *err);
// The member is gone; of a replica that trains all others with it, whose work without it is lost.
// Does nothing when there is no such member.
void cluster_leave(struct cluster *cluster, uint32_t number);
// The same, as it wished. Who is drained is so no more, but has left: under its name another may
// come.
void cluster_retire(struct cluster *cluster, uint32_t number);
// The warm start is over: members that waited train.
void cluster_warm(struct cluster *cluster);
// Divides the buckets among the parameter servers that are there, each the primary of a run of
// buckets, with as many secondaries as `copies` wants and there are servers for.
// STATUS_UNAVAILABLE when there is none.
int cluster_assign(struct cluster *cluster, struct error *err);
// Parameter server `number` came back with the store of `before`, who is gone: it has from now on
// what that had and nobody else who is not absent has (placement_succeed, with `lacks`). What is to
// be moved from the one is to be moved from the other.
int cluster_succeed(struct cluster *cluster, uint32_t before, uint32_t number, const bool *lacks,
                    cluster_absent *absent, const void *self, struct error *err);
// A parameter server is gone, or away, and others take over its buckets (placement_lose): those of
// which it was the only member stay, see cluster_lost. It remains a member, if it is one.
void cluster_lose(struct cluster *cluster, uint32_t number);
// What a parameter server proposes (placement_propose); *changed: it was carried out.
int cluster_propose(struct cluster *cluster, const struct proto_proposal *proposal, bool *changed,
                    struct error *err);
// Gives joiners to buckets that need them (placement_fill); *changed: some did. `absent` tells
// which servers were not heard lately (NULL: all were), `parted` which did not reach each other
// (NULL: all do).
int cluster_fill(struct cluster *cluster, cluster_absent *absent, const void *self,
                 const struct partings *parted, bool *changed, struct error *err);
// The buckets of this parameter server move away with the next cluster_fill. STATUS_USAGE when it
// is none, or is gone.
int cluster_drain(struct cluster *cluster, uint32_t number, struct error *err);
// The next stage, with an order of its own. STATUS_BUG when the run cannot go there from its
// present stage.
int cluster_enter(struct cluster *cluster, enum cluster_stage stage, struct error *err);
// All epochs are done: the run drains.
int cluster_finish(struct cluster *cluster, struct error *err);
// Records why the run ends. The first reason counts, but a failure counts more than the user's
// wish (STATUS_STOPPED, which promises that the run was saved).
int cluster_blame(struct cluster *cluster, int status, const char *why, struct error *err);
// New settings, with the next version. Copies the text.
int cluster_settle(struct cluster *cluster, const char *settings, struct error *err);

// Each data server that is there has a part, and their data set is the run's from now on.
int cluster_divide(struct cluster *cluster, struct error *err);
// Member `number` serves from now on the part that member `before` had, who is gone; or with
// `before` 0 a new part. A part that was left out goes on with the epoch that the run is in: what
// lies between counts as skipped.
int cluster_take_part(struct cluster *cluster, uint32_t before, uint32_t number, struct error *err);
// Before there are parts: data servers that have samples of this one, which joined in their place,
// are gone.
void cluster_outlive(struct cluster *cluster, uint32_t number);
// The run goes on without the part of this member, who is gone.
void cluster_leave_out(struct cluster *cluster, uint32_t number);

// --- texts --------------------------------------------------------------------------------

// Bucket by bucket, as on the wire: CLUSTER_BUCKETS of them, or 0.
size_t cluster_buckets(const struct cluster *cluster, struct proto_bucket *buckets);
// "worker 5 (n07-4711)"
void cluster_name(char text[128], const struct cluster_member *member);

#endif
