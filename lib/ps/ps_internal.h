// What the parts of the core share. Inside lib/ps only.
//
//   request.c  messages become requests; when all of their subrequests are done, answers
//   shard.c    queues of the shards, who has which, waiting pulls
//   examine.c  may a subrequest be applied?
//   turns.c    which subrequests make an update (the protocols)
//   apply.c    arithmetic
//   stage.c    subrequests between applied and answered
//   snapshot.c copies of shards, and back
//   blocks.c   parts of a shard that change
//   ps.c       the whole: memory, threads, settings, statistics
#ifndef ADAM_PS_PS_INTERNAL_H
#define ADAM_PS_PS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/gate.h"
#include "core/ring.h"
#include "ps/blocks.h"
#include "ps/history.h"
#include "ps/members.h"
#include "ps/ps.h"
#include "ps/replica_steps.h"

enum {
    PS_AGAIN = 100,              // milliseconds after which to ask again
    TILE_FLOATS = 32 * 1024,     // of a gradient that stays in the L2 cache until it is applied
    FLAT_FLOATS = 16 * 1024,     // of a block that a batch of plain updates passes over
    RECORDS_MAX = 256 * 1 << 20, // bytes of all requests that are under way
};

// --- requests ---------------------------------------------------------------------------

enum request_kind {
    REQUEST_GRADIENT,
    REQUEST_DELTA,
    REQUEST_FACTORS,
    REQUEST_STORE,
    REQUEST_PULL,
    REQUEST_SNAPSHOT,
    REQUEST_RESTORE,
    REQUEST_INSTALL,
};

struct objection { // why not; code PROTO_REFUSAL_NONE: none
    enum proto_refusal code;
    uint64_t detail;
    const char *text;
};

// How far a subrequest is. Before it is examined, and after it was refused, it is in no list of
// its shard.
enum subrequest_state {
    SUBREQUEST_NEW,     // to be examined, or to wait for a version
    SUBREQUEST_WAITS,   // in `waiting`: a pull, for its version
    SUBREQUEST_READY,   // in `subrequests`: this shard agrees, others are asked
    SUBREQUEST_AGREED,  // in `subrequests`: all agree
    SUBREQUEST_STAGED,  // in `staged`: applied, and to be on all copies before it is answered
    SUBREQUEST_REFUSED, // objected to, or repeated
};

// What one message wants of one shard.
struct subrequest {
    struct subrequest *queued;          // the one that was put before, while in the queue
    struct subrequest *next, *previous; // in a list of its shard; then in a batch
    struct request *request;
    uint32_t shard;
    uint32_t first, count; // pieces of the request
    size_t floats;         // of them together
    enum subrequest_state state;
    uint64_t version; // that its weights had; in the end: of the shard after it
    uint64_t step;    // in the end: of the rule; all that sessions push of one step is one
    struct objection objection;
    float error, input; // factors: largest of this subrequest's share
    // Turns (turns.c). The first subrequest of a turn stands for it.
    bool joined;             // is part of a turn
    struct subrequest *more; // of the same turn
    struct subrequest *turn,
        *last;      // of the first subrequest: the next turn; the turn's last subrequest
    size_t covered; // of the first subrequest: floats of all subrequests of the turn
    // While it is applied.
    uint64_t staleness;
    double rate;   // on its own
    double weight; // in a mean
};

struct factors { // places are those of the parameter space
    const struct layer *layer;
    const float *errors, *inputs; // samples x rows, samples x columns
    size_t rows, columns;
    bool biases; // their sums, too
};

struct request {
    struct ps *ps;
    struct buffer *home; // the memory of all this
    enum request_kind kind;
    ps_done *done;
    void *context;
    struct buffer *payload;
    const float *floats; // of the payload
    struct session *session;
    uint64_t sequence;
    uint32_t samples;
    double rate;
    struct factors factors;
    enum proto_quantity quantity; // of pulls and stores
    uint64_t least;
    struct ps_snapshot *snapshot;
    struct proto_piece *pieces;
    uint64_t *places; // where each piece begins in the payload
    uint32_t piece_count;
    struct subrequest *subrequests; // one for each shard, in the order of the pieces
    uint32_t subrequest_count;
    struct ps_extent *answers; // of a pull
    struct objection objection;
    _Atomic uint32_t unexamined, unfinished;
    _Atomic bool applied; // some subrequest was, now
};

extern const struct objection session_over;

// Where what it pulls or stores lies; NULL: the rule keeps no such state.
float *request_floats(const struct request *request);
// The subrequest is done with. The last one answers.
void subrequest_done(struct subrequest *sub);
// The same for one that cannot be carried out any more, though all had agreed.
void subrequest_refuse(struct subrequest *sub, struct objection objection);
// All subrequests were examined: the request's objection is that of the first subrequest with one.
void request_decide(struct request *request);

// --- shards -----------------------------------------------------------------------------

// Settings as they were at some time. All that ever were stay until the end.
struct rules {
    struct optimizer optimizer;
    struct protocol protocol;
    double decay;    // the most that a layer has, times its rate multiplier
    bool replicates; // pushes are answered when all copies have them
    struct rules *before;
};

struct shard {
    // Any thread.
    _Atomic(struct subrequest *) queue; // the newest; each knows the one before
    _Atomic uint32_t calls;             // to look at it, not answered yet
    _Atomic uint64_t epoch;
    _Atomic bool held;   // this server is its primary
    _Atomic bool copied; // others have copies, or make one; or all that changes is to be durable
    _Atomic bool leased; // others have copies, or make one: it is served while the lease runs
    _Atomic uint32_t tenure; // raised whenever it comes or goes
    _Atomic bool ready;      // has all its weights
    _Atomic uint64_t version;
    _Atomic uint64_t changed;    // the epoch under which it got this version
    _Atomic uint64_t replicated; // of a copied shard: the version that all have; 0: not known yet
    // Of whoever has it.
    struct subrequest *subrequests, *subrequests_last;
    struct subrequest *waiting;
    struct subrequest *staged, *staged_last; // by their versions
    uint64_t empty; // versions that no update made, as far as this server knows
    struct histories histories;
    struct replica_steps steps;
    uint64_t dirty; // blocks that changed since they were read for the copies
    uint32_t seen_tenure;
    size_t stored; // floats from the beginning that have been stored
    struct subrequest *turns;
};

// Puts a subrequest into the queue of its shard, and has somebody look at it.
void shard_post(struct ps *ps, struct subrequest *sub);
// Has somebody look at the shard.
void shard_call(struct ps *ps, uint32_t shard);
// Looks at the shard, for as long as it is called. The caller is the only one that was
// told to, by the ring of ready shards.
struct applier;
void shard_serve(const struct applier *applier, uint32_t shard);
// Refuses what is left in it, and frees its memory. When no thread but the caller is left.
void shard_end(struct ps *ps, struct shard *shard);

// The first float of a shard, and how many there are.
size_t shard_begin(uint32_t shard);
size_t shard_floats(const struct ps *ps, uint32_t shard);
// Where in its shard it begins: the same in each push of a sound worker.
uint32_t subrequest_place(const struct subrequest *sub);
// How stale it is where the shard has version `now`, and the weights had `version`.
uint64_t subrequest_behind(const struct shard *shard, const struct subrequest *sub,
                           uint64_t version, uint64_t now);

void subrequests_remove(struct shard *shard, struct subrequest *sub);

// Its weights have changed, under the present epoch.
void shard_set_version(struct shard *shard, uint64_t version);
// The subrequest has changed floats of the shard.
void shard_mark_dirty(struct shard *shard, const struct subrequest *sub);
// The version that all copies have; 0: not known yet.
uint64_t shard_replicated(const struct shard *shard);
// The version to tell others; 0: not known yet. Where pushes are answered when all copies have them
// it is one that all copies have, so it never goes back; else the newest.
uint64_t shard_told(const struct ps *ps, const struct shard *shard);
// The shard was taken away, or given, since somebody looked: what waits for it is refused.
void shard_follow_tenure(struct ps *ps, struct shard *shard);
// Whether this server's lease does not cover the shard any more.
bool shard_outlived(const struct ps *ps, const struct shard *shard);

// Why this shard does not serve this subrequest now. Any thread may ask.
struct objection shard_objection(struct ps *ps, const struct subrequest *sub);

// What an applying thread has for itself.
struct applier {
    struct ps *ps;
    float *tile; // TILE_FLOATS
};

// examine.c: whether the subrequest may be applied; *repeated: it was before.
struct objection examine_subrequest(struct ps *ps, struct shard *shard, struct subrequest *sub,
                                    bool *repeated);
// When all subrequests of a push of factors were examined: whether its products are finite.
struct objection examine_product(const struct request *request);
// Whether two subrequests of one shard have a float in common.
bool subrequests_overlap(const struct subrequest *a, const struct subrequest *b);

// turns.c: applies of the shard's subrequests what the protocol wants, and drops those whose
// sessions are over.
void turns_advance(const struct applier *applier, uint32_t index);
// Drops all subrequests that were agreed on.
void turns_drop(struct ps *ps, struct shard *shard, enum proto_refusal code);

// stage.c: the subrequest is applied, and sub->version its shard's version since: answers it now,
// or when all copies have that.
void stage_subrequest(const struct ps *ps, struct shard *shard, struct subrequest *sub);
// Answers those that all copies have by now.
void stage_release(const struct ps *ps, struct shard *shard);
void stage_drop(struct shard *shard, enum proto_refusal code);
// Weights have changed: tells who makes copies. Before the subrequests that changed them are
// staged.
void stage_tell(struct ps *ps, uint32_t shard);

// apply.c. A batch is linked by `next`.
//
// sub->version is the version that its update makes.
//
// Each subrequest on its own, in order: deltas are added, gradients take a step at sub->rate.
void apply_each(const struct applier *applier, uint32_t shard, const struct optimizer *optimizer,
                const struct subrequest *batch);
// The sum of sub->weight x gradient takes one step at this rate.
void apply_mean(const struct applier *applier, uint32_t shard, const struct optimizer *optimizer,
                const struct subrequest *batch, double rate);
void apply_store(const struct subrequest *sub);
// Blocks of the snapshot become the shard's.
void apply_snapshot(const struct ps *ps, const struct ps_snapshot *snapshot);

// snapshot.c: carries out snapshots, and what is done with them.
void snapshot_serve(struct ps *ps, struct shard *shard, struct subrequest *sub);

// --- the whole --------------------------------------------------------------------------

struct crew { // the threads of one node
    struct ps *ps;
    struct ring ready; // shards to look at, each once at most
    struct gate gate;
    int node;
};

struct applier_thread {
    pthread_t id;
    struct crew *crew;
    struct applier applier;
    bool started;
};

enum tensor_kind { TENSOR_WEIGHTS, TENSOR_BIASES, TENSOR_STATISTICS };

// Some parameters of a layer: places [begin, end) of the parameter space.
struct tensor {
    const struct layer *layer;
    enum tensor_kind kind;
    size_t begin, end;
};

struct counters {
    _Atomic uint64_t pushes, repeated, pulls, unchanged, updates, floats, dropped, queued;
    _Atomic uint64_t sample_floats; // of each push: its samples x the floats that it covers
    _Atomic uint64_t staleness_count, staleness_sum, staleness_most;
    _Atomic uint64_t staleness[PS_STALENESS_MOST + 1];
    _Atomic uint64_t refused[32];
};

struct ps {
    const struct model *model;
    const struct kernels *kernels;
    size_t parameters;
    struct tensor *tensors; // ascending
    size_t tensor_count;
    uint32_t shard_count;
    struct shard *shards;
    // Over the whole space; states, and the average of the weights as the last of them, lie one
    // behind the other, and are NULL without any.
    float *weights, *state;
    int states;     // that the optimizer keeps: those of its rule, and the average
    size_t bytes;   // of weights, and of each state
    uint64_t since; // as in ps_options
    _Atomic(struct rules *) rules;
    struct members members;
    struct pool records; // memory of requests
    struct crew *crews;
    int crew_count;
    struct applier_thread *threads;
    int thread_count;
    _Atomic bool stopping, paused;
    bool durable;         // as in ps_options
    _Atomic double lease; // clock_seconds until which copied shards are served
    struct ps_copies copies;
    struct counters counters;
};

// One of its states, over the whole space.
float *ps_state(const struct ps *ps, int state);

void counters_staleness(struct counters *counters, uint64_t staleness);

#endif
