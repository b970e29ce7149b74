// What the parts of the replica share. Inside lib/replica only.
//
//   replica.c  the whole: memory, events, reading
//   roles.c    places of buckets: taking over, retiring, silence
//   round.c    the primary's side of a shard
//   copy.c     the side of its members and joiners
#ifndef ADAM_REPLICA_REPLICA_INTERNAL_H
#define ADAM_REPLICA_REPLICA_INTERNAL_H

#include "core/invariant.h"
#include "replica/replica.h"

// Places of the others in a bucket's arrays.
enum { SLOT_SECOND, SLOT_THIRD, SLOT_JOINER, SLOTS };

// What the primary knows of another server's copy of a shard.
enum peer_state {
    PEER_ASKED,  // has the base, as far as is known; is sent the blocks that changed
    PEER_BEHIND, // has other values; is sent the whole shard
    PEER_LEVEL,  // has the stamp
};

struct peer {
    enum peer_state state;
    bool commit; // it is to be told that the stamp is committed
    bool tried;  // the round was sent to it, first at `first`, last at `sent`
    bool late;   // a joiner that did not answer in time: nobody waits for it
    bool based;  // it had what was committed last
    uint64_t sent, first;
};

// Of a primary, the round under way; between rounds base and stamp are equal.
struct round {
    bool pending; // not committed yet
    bool whole;   // read for somebody who is behind: counts in replica.wholes
    struct replica_stamp base;
    uint64_t blocks; // that differ between base and stamp
    uint64_t loaded; // that the load has
    struct replica_load *load;
    uint64_t begun;
    struct peer peers[SLOTS];
};

// What a copy has prepared and not installed. {0}: nothing.
struct held {
    bool any, whole;
    bool below; // what is installed is kept
    struct replica_stamp stamp;
    uint64_t blocks;
    struct replica_load *load;
};

struct shard {
    uint32_t bucket;
    uint32_t next;                // of the same bucket; PROTO_NOBODY: none
    struct replica_stamp stamp;   // of the values; of a primary: as they were read for the round
    bool kept;                    // what counts is where `keep` brings it...
    struct replica_stamp keeping; // ...or not: for this stamp `keep` was called last
    // A copy.
    struct held held;
    uint64_t follows; // the epoch in which a stamp was taken from the primary: later ones are newer
    // A primary.
    struct round round;
    uint64_t live;  // version
    uint64_t dirty; // blocks changed since the stamp
    bool changed;   // live values are newer than the stamp
    bool open;      // `committed` is known
    uint64_t committed;
};

struct bucket {
    struct proto_place place;
    enum replica_role role;
    uint64_t heard;           // of the primary
    bool alive;               // the joiner was heard in this epoch
    uint64_t answered[SLOTS]; // when each of the others answered a pulse last
    bool counted;             // the joiner has everything: rounds wait for it
    uint32_t first;           // shard
};

struct replica {
    struct replica_options options;
    const struct replica_host *host;
    struct shard *shards;
    struct bucket *buckets;
    uint32_t *others; // servers that get pulses
    uint32_t other_count;
    uint32_t wholes; // rounds that are read for somebody who is behind
    bool starved;    // a member is behind, and has to wait for others
    uint64_t lease, deadline;
};

static inline bool stamp_same(struct replica_stamp a, struct replica_stamp b) {
    return a.epoch == b.epoch && a.version == b.version;
}

static inline bool stamp_older(struct replica_stamp a, struct replica_stamp b) {
    return a.epoch != b.epoch ? a.epoch < b.epoch : a.version < b.version;
}

// The newest that a server has of a shard.
static inline struct replica_stamp shard_top(const struct shard *shard) {
    return shard->held.any ? shard->held.stamp : shard->stamp;
}

// Whether each state must be kept before it counts.
static inline bool is_durable(const struct replica *r) {
    return r->host->keep && !r->options.delayed;
}

static inline struct bucket *bucket_of(struct replica *r, const struct shard *shard) {
    return &r->buckets[shard->bucket];
}

static inline uint32_t shard_number(const struct replica *r, const struct shard *shard) {
    return (uint32_t)(shard - r->shards);
}

// The server in this slot of a primary's bucket; PROTO_NOBODY: none.
static inline uint32_t slot_member(const struct bucket *bucket, int slot) {
    const uint32_t members[SLOTS] = {bucket->place.second, bucket->place.third,
                                     bucket->place.joiner};
    return members[slot];
}

static inline struct shard *shard_first(struct replica *r, const struct bucket *bucket) {
    return bucket->first == PROTO_NOBODY ? NULL : &r->shards[bucket->first];
}

static inline struct shard *shard_next(struct replica *r, const struct shard *shard) {
    return shard->next == PROTO_NOBODY ? NULL : &r->shards[shard->next];
}

// A message about the shard, with the epoch of its bucket.
struct replica_message message_to(struct replica *r, const struct shard *shard,
                                  enum replica_kind kind, uint32_t to);

// --- round.c: this server is the primary of the shard -------------------------------------

// A new epoch begins: all others are asked what they have.
void round_restart(struct replica *r, struct shard *shard, uint64_t now);
// Begins rounds, and ends those that all have prepared.
void round_advance(struct replica *r, struct shard *shard, uint64_t now);
// The server in this slot tells what it has.
void round_answer(struct replica *r, struct shard *shard, int slot, const struct replica_message *m,
                  uint64_t now);
// A member is behind, and can be sent the shard now.
void round_feed(struct replica *r, struct shard *shard, uint64_t now);
// Sends again what was not answered.
void round_tick(struct replica *r, struct shard *shard, uint64_t now);
// Gives up the round: its load is not needed any more.
void round_drop(struct replica *r, struct shard *shard);
// Whether the server in this slot has not answered for options.patience.
bool round_lacks(const struct replica *r, const struct shard *shard, int slot, uint64_t now);

// --- copy.c: this server is a member or joiner --------------------------------------------

void copy_prepare(struct replica *r, struct shard *shard, const struct replica_message *m);
void copy_commit(struct replica *r, struct shard *shard, const struct replica_message *m);
// Answers a message about the stamp `asked` with what is here, if that is kept.
void copy_answer(struct replica *r, const struct shard *shard, struct replica_stamp asked);
// What counts from now on is to be kept, and is not yet.
void copy_keep(struct replica *r, struct shard *shard, struct replica_stamp stamp,
               struct replica_load *load);
// What is prepared becomes the values.
void copy_install(struct replica *r, struct shard *shard);
// What is prepared is forgotten: what is installed counts again.
void copy_discard(struct replica *r, struct shard *shard);
// Gives its load back.
void copy_drop(struct replica *r, struct shard *shard);

// --- roles.c ------------------------------------------------------------------------------

// Takes over a place with a higher epoch.
void bucket_place(struct replica *r, struct bucket *bucket, const struct proto_place *place,
                  uint64_t now);
// Proposes what time has shown to be necessary.
void bucket_tick(struct replica *r, struct bucket *bucket, uint64_t now);

#endif
