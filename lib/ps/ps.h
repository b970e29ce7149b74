// The core of a parameter server: a part of the parameter space, and the rules by which
// pushes change it. No sockets and no files: messages come decoded, with their payloads
// (proto/proto.h), and answers go to a callback.
//
// "The model parameters are divided into 1 MB sized shards, which represents a contiguous
//  partition of the parameter space [...] we opportunistically batch updates. This improves
//  temporal locality and relieves pressure on the L3 cache by applying all updates in a
//  batch to a block of parameters before moving to next block in the shard. [...] all
//  processing is NUMA aware. Shards are allocated on a specific NUMA node and all update
//  processing for the shard is localized to that NUMA node by assigning tasks to threads
//  bound to the processors for the NUMA node [...] We use lock free data structures for
//  queues and hash tables in high traffic execution paths" (Adam 3.3.1)
//
// Weights and each array that the optimizer keeps, "state" below, are arrays over the whole
// parameter space, mapped when they are first touched: shards that another server holds cost
// nothing. An average of the weights is the last of them, and moves with each update of a weight.
//
// Shards, one at a time and each on its own:
//
//  - A shard has a clock, its version: 0 before it has weights, then what `store` said. It
//    grows with every update of the shard and with nothing else. The staleness of a push
//    at a shard is the shard's version when the push is applied, before that makes it
//    grow, minus the version that the push carries.
//  - Whatever is asked of a shard goes into its queue. At any time at most one thread has a
//    shard; it takes all that is queued, and looks at it in the order in which it came. So
//    nothing below needs a lock, and updates of a shard have one order.
//
// A push is carried out as a whole or not at all:
//
//  1. Its form is checked when it is handed in: kind, session, pieces (in ascending order,
//     not overlapping, within the model), size of the payload.
//  2. Every shard that it touches then examines its subrequest: is it held here, under which epoch,
//     has it weights, is the push stale, was it applied before, may each number be applied.
//     The first objection, in the order of the pieces, refuses all of it. (A push to one shard
//     is examined and applied at once; to several, each subrequest is kept until all agree.)
//  3. Each shard applies its subrequest by the protocol. When the last one has, the push is
//     answered, with the versions that the shards have then.
//
// No push makes a weight not finite. Its numbers, or all that products of its factors can
// come to, are at most PS_LARGEST; its rate is from 0 to PS_RATE_MOST, and so that decay
// does not make weights grow. Then no training that learns is refused anything, and it takes
// more than 10^6 pushes, each of them beyond all measure, to bring a weight or a sum of
// squares to the end of the floats. It costs one look for the largest magnitude,
// which a look for numbers that are not finite would, too.
//
// Exactly once, as requests are sent again when a link broke: for each session a shard keeps
// the highest sequence number that it applied, and which of the 63 before it. A push that
// was applied is answered as `repeated`; one that is here but not applied yet is told to
// ask again soon (busy); one of 64 or more below the highest, of which nobody can tell, is
// refused as `replayed`. Numbers need not come in order, and may be left out. All pieces of
// one shard that are pushed under one number must be in one message.
//
// Protocols (rule/protocol.h), lambda being the number of replicas that work (ps_members), each
// of one session or of several that have parts of the model:
//
//  async     A subrequest is applied as soon as it is agreed on; it makes the version grow by 1.
//            Deltas are added. Gradients, and factors, go through the update rule at
//              rate x protocol_factor(staleness).
//            max_staleness: a push that is staler when it is examined is refused. Where
//            replicas have several sessions, what these push of a step is one step of
//            staleness (ps/replica_steps.h).
//  hardsync  A shard collects turns. What a replica has pushed to a shard is a turn as soon
//            as it covers all floats of the shard once, in however many messages (a layer
//            sent as factors, the others as gradients). A push counts only for the present
//            version: another one is refused as too stale, and so is a second push of what
//            the replica's turn covers already. When all lambda replicas have taken their
//            turns there is one update, of the turns' mean weighted by samples,
//              g = sum s_l g_l / S,   S = sum s_l           (Rudra eq. 3 and 7)
//            at the rate sum s_l rate_l / S x protocol_update_factor(S), and all are
//            answered. A push of samples 0 has no payload: it covers its pieces without a
//            gradient. If all turns are such, the version grows and nothing else changes.
//  softsync  The same with the first floor(lambda / n) turns, at least 1, whosever they are
//            (Rudra eq. 5), of whatever version that max_staleness allows; a replica that
//            pushes more begins another turn. With f_l = protocol_factor(staleness of turn l),
//              g = sum s_l f_l g_l / sum s_l f_l,   rate = sum s_l f_l rate_l / S
//            so that a mean factor 1/n divides the rate, whatever the update rule. Pushes
//            of samples 0 are turns where gradients wait for some; else they are answered
//            and count for nothing, as under async.
//
// What is collected keeps its payloads: under hardsync and softsync up to as many as there
// are workers (or turns) times the parameters that are held here. Whoever receives payloads
// allows for that, or the last turn does not come.
//
// Deltas are for async alone (refused as a bad setting). Rate multipliers and weight decay
// of layers are obeyed. Gradients are not clipped here: no server sees the norm of a layer,
// which may lie in many shards; who pushes clips.
//
// Membership: a session that ps_members no longer names is over. Its pushes that were not
// applied yet are dropped and answered as `wrong session`, and shards that only waited for
// it go on. (Whether the run may go on is the controller's decision. Shards are each on their
// own: one may have updated with such a push already, and another not.) What it pushes
// afterwards is refused. A session that was never named is told to ask again soon (busy):
// word of it has not come here yet.
//
// Reading is never in the way of writing: pulls get pointers to the weights where they lie,
// while updates go on (Adam 3.2.2: "without using locks"; core/hogwild.h), each number
// whole; the version that comes with them is no newer than they are. Under hardsync the
// weights stand still from when a version is reached until every working session, which
// must have read them to do so, has pushed.
//
// Queues and tables are C11 atomics (shard.c, members.c, core/ring.h): each is a few lines,
// and ThreadSanitizer sees through them, as it would not through the inline assembly of a
// library such as Concurrency Kit.
//
// Threads: all functions may be called by any thread at any time, but ps_open and ps_close;
// none waits, but those. ps_route, ps_settings and ps_members each by one at a time. The
// core's own threads apply updates and call back.
#ifndef ADAM_PS_PS_H
#define ADAM_PS_PS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/pool.h"
#include "model/model.h"
#include "proto/proto.h"
#include "ps/history.h"
#include "rule/optimizer.h"
#include "rule/protocol.h"

struct error;
struct kernels;

struct ps;

// Who brings what changes to the copies of shards on other servers: below, "copies of shards".
struct ps_copies {
    void *self;
    // Weights of this shard, which has copies elsewhere, have changed. Called by any thread of the
    // core; must not wait. NULL: no routes give copies, and nothing is durable.
    void (*applied)(void *self, uint32_t shard);
};

struct ps_options { // model and kernels outlive the server
    const struct model *model;
    const struct kernels *kernels;
    struct optimizer optimizer;
    uint64_t since; // the version that shards had when their state was zeros
    struct protocol protocol;
    int threads; // that apply updates; 0: as cpu_count says
    struct ps_copies copies;
    bool replicates; // ps_settings
    // ack = durable: shards without copies elsewhere, too, are told of and staged as those that
    // have some, until ps_replicated says that what was applied is on stable storage.
    bool durable;
};

// Holds nothing, and knows nobody. STATUS_IO when memory or threads are out.
int ps_open(struct ps **out, const struct ps_options *options, struct error *err);
// Refuses what waits as `stopping`, calls back for all of it, and ends. NULL: nothing.
void ps_close(struct ps *ps);

// --- what the controller says -----------------------------------------------------------

// Which shards are held here from now on, and the epochs: those of the buckets of which
// `member` is the primary (shard s is in bucket proto_bucket_of(s, count)). `places` are in the
// order of their buckets. What waits for shards that went away is refused. A shard that goes keeps
// what it has, and has it when it comes: who gives it sees to it that nobody has newer weights.
void ps_route(struct ps *ps, const struct proto_place *places, uint32_t count, uint32_t member);

// Updates from now on follow these; what is collected already is looked at again. The
// optimizer must keep what that of ps_open does: state is laid out for it. `replicates`: pushes to
// shards with copies are answered when all copies have them (ack = replicated; under hardsync and
// softsync always; true with ps_options.durable). STATUS_IO: out of memory, nothing has changed.
int ps_settings(struct ps *ps, const struct optimizer *optimizer, const struct protocol *protocol,
                bool replicates, struct error *err);

// The sessions that work from now on, and the replica that each is of (NULL: each is one): the
// number of replicas is lambda. STATUS_IO: out of memory, nothing has changed.
int ps_members(struct ps *ps, const uint64_t *sessions, const uint32_t *replicas, size_t count,
               struct error *err);

// --- requests ---------------------------------------------------------------------------

#define PS_LARGEST 1e12f // magnitude of a number that is pushed
#define PS_RATE_MOST 1e9 // as settings of a run may have it

struct ps_extent { // bytes of a payload
    const void *at;
    size_t size;
};

// How a request ended. All of it is valid until the callback returns; the bytes that extents
// point to until ps_close.
struct ps_answer {
    enum proto_refusal code; // PROTO_REFUSAL_NONE: carried out
    uint64_t detail;         // as messages.h says for the code
    const char *text;        // for people; "" when the code says it all
    bool repeated;           // push: applied before, and not again
    // As the request had them, with the versions after it. Of a pull: a piece that is
    // not newer than what the asker has gets count 0, and no extent.
    const struct proto_piece *pieces;
    uint32_t piece_count;
    const struct ps_extent *extents; // of a pull, in the order of the pieces
    uint32_t extent_count;
};

// Called exactly once for each request: by one of the core's threads, or before the
// function that made the request returns. Must not wait.
typedef void ps_done(void *context, const struct ps_answer *answer);

// `message` is needed until the return, `payload` (NULL: none) is held until the callback.
void ps_push(struct ps *ps, const struct proto_push *message, struct buffer *payload, ps_done *done,
             void *context);
// The product of the error gradients (k x rows) and the activations (k x columns) is the gradient
// of the layer's weights, as in struct dense_errors; the sums of the error gradients over k are
// that of its biases. It is made tile by tile, of the pieces only. The payload is refused as not
// finite also when a sum of its products might be beyond PS_LARGEST.
void ps_push_factors(struct ps *ps, const struct proto_push_factors *message,
                     struct buffer *payload, ps_done *done, void *context);

// Sets weights or a state, and the version of the shards. A shard has weights, and can be
// pushed to and pulled from, when all of its floats have been stored, in the order of their
// offsets: state comes first. Version 0 is refused (wrong shape). Whose requests these may be is
// for the caller to check, here and for pulls.
void ps_store(struct ps *ps, const struct proto_store *message, struct buffer *payload,
              ps_done *done, void *context);

// Pieces whose shard has another version than the asker, or who has none (0); of more than
// PROTO_PAYLOAD_MAX bytes in all it is refused (too large). State of a rule
// that keeps none is refused (bad setting). With `least`, called back when each shard has
// that version or a later one: it waits in the shards, and nobody polls.
void ps_pull(struct ps *ps, const struct proto_pull *message, ps_done *done, void *context);

// The versions of the shards in [first, first + count) that are held and have weights.
// Returns how many pieces it wrote.
uint32_t ps_versions(const struct ps *ps, uint32_t first, uint32_t count,
                     struct proto_piece pieces[]);

// --- copies of shards: for a store, and on other servers ---------------------------------
//
// "Parameter storage is modelled as a write back cache, with dirty chunks flushed asynchronously in
//  the background." (Adam 3.3.2)
// "There are three copies of each parameter shard in the system and these are stored on different
//  parameter servers." (Adam 3.3.3)
//
// What a shard has is told from what it had before by its stamp: the epoch under which its weights
// changed last, and its version.
//
// The core of replication (replica/) decides which copies there are; its host (role/paramserver)
// reads and installs them here. While a shard has copies elsewhere, or one is made:
//
//  - What is applied to it is told (ps_copies.applied), and answered when ps_replicated says that
//    all copies have that version: a subrequest that is applied is staged until then.
//  - Its version, as it is told to others, is the one that all copies have, so that it never goes
//    back; where pushes are not answered for by the copies (ack = memory) it is the newest, and
//    goes back with a server that is lost. Before the copies have one version pulls are told to ask
//    again (not ready).
//  - It is served while the lease runs (ps_lease).

// A shard at some time, all of it of the same moment.
struct ps_snapshot {
    uint32_t shard;
    uint64_t blocks;         // bit b: block b (ps/blocks.h) is in it; PS_BLOCKS: all
    bool changes;            // those that changed since the last such snapshot are wanted, too
    uint64_t changed;        // these; they are in `blocks` afterwards
    uint64_t epoch, version; // its stamp
    // Memory of the caller: the floats of the blocks, packed; for as many as the shard has
    // (`floats`) where blocks are wanted that changed. States are neither written nor read that
    // the rule does not keep.
    float *weights, *states[KEPT_MOST];
    uint32_t floats;
    // Which pushes were applied: of sessions that are not over, in any order. Memory of malloc; the
    // caller's in the end, whatever happened.
    struct push_history *pushes;
    uint32_t push_count, push_room;
};
#define PS_BLOCKS UINT64_MAX

// Takes one of snapshot->shard, by the thread that has the shard: no update comes in between, and
// it costs that thread a copy. `snapshot` is needed until the callback. Refused: not ready, when
// the shard has no weights (version 0 then); busy, out of memory.
void ps_snapshot(struct ps *ps, struct ps_snapshot *snapshot, ps_done *done, void *context);

// Gives a shard that has no weights those of a snapshot, with all that belongs to them. Refused:
// wrong shape, of another number of floats, not whole or of version 0; busy, when it has weights.
void ps_restore(struct ps *ps, struct ps_snapshot *snapshot, ps_done *done, void *context);

// Gives a shard of which another server is the primary the blocks of a snapshot, and its stamp and
// history; of version 0: it has no weights from then on. Refused: wrong shape, when it is not of
// this shard, or has not all blocks of a shard without weights; wrong role, when it is held here;
// busy, out of memory.
void ps_install(struct ps *ps, struct ps_snapshot *snapshot, ps_done *done, void *context);

// The stamps of the shards in [first, first + count) that have weights, held or not. Returns how
// many pieces it wrote.
uint32_t ps_stamps(const struct ps *ps, uint32_t first, uint32_t count,
                   struct proto_piece pieces[]);

// Before ps_route, by the same thread: what of the shard's new place must not wait. A shard that
// goes is not served any more; of one that others will have copies of, changes are told. True: the
// version that it has after the next ps_snapshot is the last of what was before.
bool ps_withdraw(struct ps *ps, uint32_t shard, const struct proto_place *place, uint32_t member);

// Shards with copies are served until then (clock_seconds). At first: not at all.
void ps_lease(struct ps *ps, double until);

// All copies of the shard have this version; with ps_options.durable: on stable storage.
void ps_replicated(struct ps *ps, uint32_t shard, uint64_t version);

// While it is paused all pushes are told to ask again soon (busy), so that no more comes that
// would be lost with this server.
void ps_pause(struct ps *ps, bool paused);

// --- statistics -------------------------------------------------------------------------

#define PS_STALENESS_MOST 255

struct ps_figures {           // since ps_open
    uint64_t pushes;          // carried out, repeated ones left out
    uint64_t repeated;        // answered as repeated
    uint64_t pulls;           // answered
    uint64_t unchanged;       // pieces of pulls that were not newer
    uint64_t samples;         // of the pushes, each by its share of the floats held: a
                              // mini-batch that comes in several messages counts once
    uint64_t refused[32];     // requests, by code
    uint64_t updates;         // of shards: what made versions grow
    uint64_t floats;          // parameters changed, counted each time ("updates" of Adam 4)
    uint64_t dropped;         // subrequests of pushes of sessions that were over
    uint64_t queued;          // subrequests of pushes that are here and not applied yet
    uint64_t held;            // shards that are held here
    uint64_t ready;           // of these, shards that have weights
    uint64_t behind;          // of these, shards of which not all copies have the newest version
    uint64_t version;         // the newest of a shard
    uint64_t staleness_count; // subrequests of pushes applied
    uint64_t staleness_sum;   // over them: the mean is sum / count
    uint64_t staleness_most;  // the greatest
    uint64_t staleness[PS_STALENESS_MOST + 1]; // how many had it; the last: or more
};
void ps_figures(const struct ps *ps, struct ps_figures *figures);

#endif
