// What the controllers of a run agree on: who the members are, which parameter server has
// which buckets, what is trained and how far the run is. "The controller maintains in its
// replicated state the configuration of parameter server cluster" (Adam 3.3.3). It is the
// state of the Paxos register (cluster/paxos.h), as JSON text, and the transitions that
// change it. Pure: no clock, no files, no network; not shared between threads.
#ifndef ADAM_CLUSTER_CLUSTER_H
#define ADAM_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "proto/proto.h"

// "When a parameter server machine [...] buckets are distributed equally" (Adam 3.3.1):
// enough of them that each of many servers gets as much as any other.
#define CLUSTER_BUCKETS 1024
#define CLUSTER_MEMBERS_MAX 2000 // that live
#define CLUSTER_GONE_MAX 32      // remembered, for people
#define CLUSTER_TEXT_MAX ((1 << 20) - 64)

// How far a run is: S(NAME, name).
#define CLUSTER_STAGES(S)                                                                          \
    S(STARTING, "starting") /* waits for servers, and gives them the first weights */              \
    S(TRAINING, "training") /* */                                                                  \
    S(DRAINING, "draining") /* workers push what they hold, and leave */                           \
    S(SAVING, "saving")     /* the last test and checkpoint */                                     \
    S(STOPPING, "stopping") /* all others leave */                                                 \
    S(OVER, "over")

#define CLUSTER_AS_STAGE(NAME, name) CLUSTER_##NAME,
enum cluster_stage { CLUSTER_STAGES(CLUSTER_AS_STAGE) CLUSTER_STAGE_COUNT };

struct cluster_member {
    uint32_t number;
    uint64_t session;
    enum proto_role role;
    uint32_t threads;
    uint64_t memory;
    uint64_t first, samples; // of a data server: those that it serves
    bool gone;               // silent for too long, or left; its session is over
    char name[PROTO_NAME_MAX + 1];
    char training[PROTO_ADDRESS_MAX + 1];
    char replication[PROTO_ADDRESS_MAX + 1];
    char administration[PROTO_ADDRESS_MAX + 1];
};

// Buckets first..first+count-1 are one server's. (Primary only: copies come with
// replication, and have their places on the wire.)
struct cluster_route {
    uint32_t first, count;
    uint64_t epoch;
    uint32_t primary;
};

// Samples of the data set that one data server has. The parts of a run are those that were there
// when training began, and new ones that join later. A part stays while its data server is away:
// the workers wait for it at the end of the epoch, unless it is left out.
struct cluster_part {
    uint64_t first, samples;
    uint32_t member; // that has it, or had it last
    double epoch;    // how many epochs of it are done, as a data server told last
    bool out;        // the run goes on without it (on-data-loss=continue)
    double missing; // the caller's clock when its data server went away; 0: it is there. Not stored
};

struct cluster {
    struct proto_id run;
    enum cluster_stage stage;
    bool warm;                            // the warm start is over, if there was to be one
    bool finished;                        // all epochs are done
    int status;                           // that the run ends with
    char *why;                            // that status is not STATUS_OK; NULL
    uint64_t next_session, order;         // numbers; an order is raised with each stage
    uint32_t next_member;                 //
    uint64_t members_epoch, routes_epoch; // 0 of routes: none yet
    uint64_t settings_version;            //
    char *resume;                         // checkpoint that gives the first weights; NULL: none
    char *model_name, *model, *settings;  // texts of model (adam-model(5)) and settings
    struct cluster_member *members;       // in the order of joining
    size_t member_count;                  //
    struct cluster_route *routes;         // of all buckets, in order; none yet: 0
    size_t route_count;                   //
    struct cluster_part *parts;           // of the data; before training begins: 0
    size_t part_count;                    //
};

// A new run; copies the texts (`resume` may be NULL). cluster_free also after a failure.
int cluster_open(struct cluster *cluster, struct proto_id run, const char *model_name,
                 const char *model, const char *settings, const char *resume, struct error *err);
void cluster_free(struct cluster *cluster);
const char *cluster_stage_name(enum cluster_stage stage);

// JSON text, to be freed with free(); NULL when out of memory.
char *cluster_write(const struct cluster *cluster);
// STATUS_DATA for whatever is not such a state: every member is checked before it is
// believed.
int cluster_read(struct cluster *cluster, const char *text, size_t size, struct error *err);

// The member with this session that is not gone, or NULL.
struct cluster_member *cluster_find(const struct cluster *cluster, uint64_t session);
struct cluster_member *cluster_numbered(const struct cluster *cluster, uint32_t number);
size_t cluster_count(const struct cluster *cluster, enum proto_role role); // not gone

// A new member, with a session that was never used before. Whoever had its role at its
// address is gone: it was started again. STATUS_UNAVAILABLE when there are too many. The
// pointer is good until the next transition.
int cluster_join(struct cluster *cluster, const struct proto_join *join,
                 struct cluster_member **member, struct error *err);
void cluster_leave(struct cluster *cluster, struct cluster_member *member);
// The warm start is over: members that waited work.
void cluster_warm(struct cluster *cluster);
// Gives the buckets to the parameter servers that are there, each a run of them.
// STATUS_UNAVAILABLE when there is none.
int cluster_assign(struct cluster *cluster, struct error *err);
// The next stage, with an order of its own.
void cluster_enter(struct cluster *cluster, enum cluster_stage stage);
// How the run will end. The first reason counts, but a failure counts more than the user's wish
// (STATUS_STOPPED, which promises that the run was saved).
int cluster_blame(struct cluster *cluster, int status, const char *why, struct error *err);
// New settings, with the next version.
int cluster_settle(struct cluster *cluster, const char *settings, struct error *err);

// A parameter server that has buckets and is gone; NULL: none.
const struct cluster_member *cluster_lost(const struct cluster *cluster);
// Whether the member has buckets.
bool cluster_serves(const struct cluster *cluster, uint32_t number);

// The data servers that are there have a part each.
int cluster_divide(struct cluster *cluster, struct error *err);
// The part that this member has, or had last; NULL: none.
struct cluster_part *cluster_part_of(const struct cluster *cluster, uint32_t number);
// The first epoch in which its samples are still wanted.
uint32_t cluster_part_epoch(const struct cluster *cluster, const struct cluster_part *part);
// Its data server has done so many epochs. True when a whole one more is over.
bool cluster_part_told(struct cluster_part *part, double epoch);
// Of all parts, or of those that are left out.
uint64_t cluster_samples(const struct cluster *cluster, bool out);
// Whether a data server that asks to join can have a part: one of its samples that nobody serves
// any more (*vacant), or a new one (NULL). `absent` tells whether a member is away.
typedef bool cluster_absent(const void *self, const struct cluster_member *member);
bool cluster_vacant(const struct cluster *cluster, const struct proto_join *join,
                    cluster_absent *absent, const void *self, struct cluster_part **vacant);
// The member has the part from now on; NULL: a new one. A part that was left out goes on with the
// epoch that the run is in.
int cluster_take_part(struct cluster *cluster, struct cluster_part *part,
                      const struct cluster_member *member, struct error *err);
// The run goes on without it.
void cluster_leave_out(struct cluster *cluster, struct cluster_part *part);

// Bucket by bucket, as the wire has them: CLUSTER_BUCKETS of them, or 0.
size_t cluster_buckets(const struct cluster *cluster, struct proto_bucket *buckets);
// "worker 5 (n07-4711)": a member as messages name it.
void cluster_name(char text[128], const struct cluster_member *member);

#endif
