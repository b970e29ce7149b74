// Copies of the shards on several parameter servers, kept equal by two-phase commit: the core of
// replication, one per server.
//
// "There are three copies of each parameter shard in the system and these are stored on different
//  parameter servers. [...] The primary machine replicates changes to shards within a bucket to
//  all secondary machines via a 2 phase commit protocol." (Adam 3.3.3)
//
// Pure: events and the time go in (functions), messages, loads to install and proposals come out
// (struct replica_host). It uses no sockets, files, clocks or threads, so tests simulate whole
// clusters. The published design nearest to it is PacificA (Lin and others, MSR-TR-2008-25).
//
// The controllers give each bucket a place (struct proto_place): an epoch that grows with every
// change, the primary, up to two secondaries, and perhaps a joiner. Primary and secondaries are
// the members. Every message carries the epoch. A receiver refuses a lower one and asks for routes
// when it sees a higher one. Safety rests on epochs alone, never on clocks.
//
// Stamps. The values of a shard have a stamp: the epoch under which the primary made them, and
// the version of the shard (its clock). In an epoch only the primary makes stamps, so equal stamps
// imply equal values. Stamps of different epochs say nothing about each other.
//
// Rounds. The primary applies pushes to its live values at once. A round of a shard then sends the
// values (never operations: processors round differently) of the blocks that changed, with the
// history of applied pushes, to the others:
//
//   primary                        member, joiner
//     PREPARE base -> stamp   ->     has base: holds the load
//                             <-   PREPARED stamp
//     all have it: committed
//     COMMIT stamp            ->     checks the epoch and the sender, installs the load
//                             <-   PREPARED stamp, committed stamp
//
// The next PREPARE carries the COMMIT: its base is the stamp that is committed. While a round is
// under way pushes gather for the next one (folding). Who does not have the base answers with the
// stamp that it has, and is sent the whole shard. A bucket without shards has no rounds: of its
// joiner an answer to a pulse is enough.
//
// A push is replicated when a round that has it is committed: it is then on every member. A member
// is dropped only by a new epoch. A joiner becomes a member when it has all shards of the bucket:
// from that moment on the primary waits for it in every round, and then tells the controllers.
//
// Stable storage (replica_host.keep). After a power cut any member may be the first to come back,
// and the run goes on with what that has. Under ack = durable a copy is prepared when it is kept.
// Else (replica_options.delayed, "delayed persistence", Adam 3.3.2) what is kept may be older than
// a copy by the window; but a joiner that was sent a shard whole has kept it before it counts:
// what it had before may be of any age.
//
// Takeover. Each replicated push is prepared on every member, so whichever becomes the primary has
// it. It installs what it has prepared, and does a round of each shard under the new epoch before
// any push to it counts as replicated, and before it tells anybody a version.
//
// Call all functions of one replica from one thread at a time. Times are milliseconds of a
// monotonic clock. The host's functions must not call back into the replica.
#ifndef ADAM_REPLICA_REPLICA_H
#define ADAM_REPLICA_REPLICA_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/proto.h"

struct error;

#define REPLICA_ALL UINT64_MAX // all blocks of a shard (PROTO_SHARD_BLOCKS): block b is bit b

struct replica_stamp { // {0, 0}: the shard has no values yet
    uint64_t epoch, version;
};

enum replica_kind {
    REPLICA_PREPARE,  // to a member or joiner
    REPLICA_COMMIT,   // to a member or joiner
    REPLICA_PREPARED, // to the primary; answers both
    REPLICA_STALE,    // to the sender of a lower epoch; carries the higher one
    REPLICA_PULSE,    // from a primary to those who have its buckets; carries no epoch
    REPLICA_ALIVE,    // answers a pulse
};

struct replica_load; // the host's: values of some blocks of a shard, and the history of its pushes

struct replica_message {
    enum replica_kind kind;
    uint32_t from, to; // members
    uint32_t shard;
    uint64_t epoch;                 // of the shard's bucket
    struct replica_stamp base;      // prepare: of the values that the load changes
    struct replica_stamp asked;     // prepared: the stamp of the message that it answers
    struct replica_stamp stamp;     // of the values; prepared: the newest that the sender has
    struct replica_stamp committed; // prepared: of the values that the sender has installed
    uint64_t blocks;                // prepare: the blocks to be sent of the load
    bool whole;                     // prepare: the load has all values, whatever the receiver has
    struct replica_load *load;      // prepare; NULL when base and stamp are equal
};

struct replica_read {
    uint64_t version; // of the shard
    uint64_t changed; // blocks
};

// What a replica needs of its server. Loads are counted references: `read` gives one, `hold`
// another; the replica gives each back with `release`.
struct replica_host {
    void *self;
    // The values of these blocks, and of all others that changed since the last read, as they are
    // now, with the whole history, in which no push is applied in part; of a shard without values,
    // a load without any. `read` has what replica_applied told last, and is set to what was read:
    // pushes may be in it that were not told yet. NULL when out of memory: tried again at the next
    // tick.
    struct replica_load *(*read)(void *self, uint32_t shard, uint64_t blocks,
                                 struct replica_read *read);
    // Takes over the load: values of its blocks, history, and stamp.version as the version. When
    // `whole`, nothing that the shard had before stays.
    void (*install)(void *self, uint32_t shard, struct replica_stamp stamp, uint64_t blocks,
                    bool whole, struct replica_load *load);
    void (*hold)(void *self, struct replica_load *load);
    void (*release)(void *self, struct replica_load *load);
    // NULL: there is no stable storage. Otherwise brings the shard there as soon as it can, and
    // calls replica_kept then: of a primary, or without a load, all that the server has by then; of
    // another what it has installed, with the load over it.
    void (*keep)(void *self, uint32_t shard, struct replica_stamp stamp, struct replica_load *load);
    // The message is valid until the return. It may be lost, doubled and overtaken.
    void (*send)(void *self, const struct replica_message *message);
    // To the controllers; may be lost: each tick proposes all that is wanted then.
    void (*propose)(void *self, const struct proto_proposal *proposal);
    // Pushes up to this version of the shard are on all members of its bucket.
    void (*replicated)(void *self, uint32_t shard, uint64_t version);
    // This server is not the shard's primary any more: pushes that wait for `replicated` will not
    // get it. Who sent them asks the new primary.
    void (*closed)(void *self, uint32_t shard);
    // There is a higher epoch than is known here: ask the controllers for places. Called often.
    void (*outdated)(void *self);
};

struct replica_options {
    uint32_t member;   // this server's number: a new one at each start
    uint32_t shards;   //
    uint32_t buckets;  // shard s is in bucket proto_bucket_of(s, buckets)
    uint32_t pulse;    // milliseconds between pulses, and between ticks
    uint32_t silence;  // without a word of the primary: a secondary wants its role
    uint32_t resend;   // without an answer: a message is sent again
    uint32_t patience; // without an answer: a member is to be dropped, a joiner not waited for;
                       // with `keep` a member that answers pulses is waited for
    uint32_t interval; // at least, from the begin of a round to that of the next; 0: none
    uint32_t wholes;   // shards that are copied whole at a time, for joiners at most so many in a
                       // tick: that takes a bounded share of the bandwidth
    bool delayed;      // what is on stable storage may be older, by a window that the host bounds
};

struct replica;

// A server that has no bucket and no values. STATUS_USAGE for options of zero (but `interval`),
// STATUS_IO when out of memory. The host outlives it.
int replica_open(struct replica **out, const struct replica_options *options,
                 const struct replica_host *host, uint64_t now, struct error *err);
void replica_close(struct replica *replica);

// --- events -----------------------------------------------------------------------------

// After the open, before any other event: the host has values of this shard, from stable storage.
void replica_restore(struct replica *replica, uint32_t shard, struct replica_stamp stamp);

// What the controllers agreed on for some of the buckets, in any order. Older news is ignored, and
// so is a place of a bucket that does not exist. "The PS controller hands out bucket assignments
// (primary role via a lease, secondary roles with primary lease information)" (Adam 3.3.3). Losing
// a role does not lose the values.
void replica_route(struct replica *replica, const struct proto_place *places, uint32_t count,
                   uint64_t now);

// The controllers' lease on all primary roles of this server runs until then. At first: none.
// Without one it does not beat to its secondaries: one of them takes its place.
void replica_lease(struct replica *replica, uint64_t until);

// Pushes were applied to this shard, of which this server is the primary: the blocks that they
// changed (0: the host's `read` knows, or the history alone), and the version of the shard after
// them. Does nothing when that was read already.
void replica_applied(struct replica *replica, uint32_t shard, uint64_t blocks, uint64_t version,
                     uint64_t now);

// A message of another server. Ignores what no server would send. Holds the load as long as it
// needs it. Whoever decodes the message has checked that the load has the blocks.
void replica_receive(struct replica *replica, const struct replica_message *message, uint64_t now);

// What `keep` was called for is on stable storage.
void replica_kept(struct replica *replica, uint32_t shard, struct replica_stamp stamp,
                  uint64_t now);

// Lets time pass. Call at replica_deadline or soon after.
void replica_tick(struct replica *replica, uint64_t now);

// --- reading ----------------------------------------------------------------------------

uint64_t replica_deadline(const struct replica *replica);

// The version to tell those who pull or push. All members have it, so it never goes back. The
// values may be newer: "DNN models are capable of learning even in the presence of small amounts
// of lost updates" (Adam 3.3.2).
uint64_t replica_version(const struct replica *replica, uint32_t shard);

// Whether pushes up to this version are on all members: a push that was applied before counts as
// replicated when the present version is.
bool replica_has_replicated(const struct replica *replica, uint32_t shard, uint64_t version);

enum replica_role { REPLICA_NONE, REPLICA_JOINER, REPLICA_SECONDARY, REPLICA_PRIMARY };

struct replica_bucket { // what is known of a bucket, for people
    struct proto_place place;
    enum replica_role role;
    uint32_t shards;
    uint32_t behind; // of a primary: shards with a round under way
};
struct replica_bucket replica_bucket(const struct replica *replica, uint32_t bucket);

// The stamp of the newest values: prepared or installed; of a primary: that of the live values.
struct replica_stamp replica_stamp(const struct replica *replica, uint32_t shard);

#endif
