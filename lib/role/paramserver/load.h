// What replication sends of a shard: values of some blocks of it, and which pushes made them. The
// replica's loads (replica/replica.h), read from the shards of this server (ps/) or received from
// another one, and sent from where they lie.
//
// Threads: all functions are called by the replicator's thread, and the references are its own; but
// load_unpack by any while a reference is held.
#ifndef ADAM_ROLE_PARAMSERVER_LOAD_H
#define ADAM_ROLE_PARAMSERVER_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/gate.h"
#include "net/link.h"
#include "ps/ps.h"
#include "replica/replica.h"

struct replica_load {
    uint32_t references;
    uint32_t floats;                          // that the shard has
    uint64_t blocks;                          // that are here; none of a shard without weights
    struct buffer *buffer;                    // of the floats; NULL: none
    const float *weights, *states[KEPT_MOST]; // packed (ps/blocks.h)
    int state_count;
    struct push_history *pushes;
    uint32_t push_count;
};

// Where loads are read from and go to.
struct load_place {
    struct ps *ps;
    struct pool pool;  // of the floats that are read
    int states;        // that the rule keeps
    size_t parameters; // of the model
    // Its own: of asking a shard, and waiting for it.
    struct gate asked;
    _Atomic bool answered;
    enum proto_refusal code;
};

uint32_t load_shards(const struct load_place *place);

// replica_host.read. NULL: out of memory.
struct replica_load *load_read(struct load_place *place, uint32_t shard, uint64_t blocks,
                               struct replica_read *read);
// replica_host.install. Refusals are bugs, but for one: busy, when out of memory.
enum proto_refusal load_install(struct load_place *place, uint32_t shard,
                                struct replica_stamp stamp, uint64_t blocks,
                                struct replica_load *load);
// The version that a shard has when all that was agreed on before has been applied, and whether it
// has weights (or version 0).
uint64_t load_version(struct load_place *place, uint32_t shard);

void load_hold(struct replica_load *load);
void load_release(struct replica_load *load);

// Of a message that came: holds the payload. NULL: it is not what the message says, or memory is
// out.
struct replica_load *load_take(struct load_place *place, const struct proto_prepare *message,
                               struct buffer *payload);

// Its blocks, into all floats of the shard, and of each state that there is.
void load_unpack(const struct replica_load *load, float *weights, float *const states[]);

// Parts of the payload for these blocks of the load, in at most LOAD_PARTS; returns how many.
#define LOAD_PARTS ((1 + KEPT_MOST) * PROTO_SHARD_BLOCKS)
uint32_t load_parts(const struct replica_load *load, uint64_t blocks, struct link_part *parts);
// The history as it goes into a message, to be freed with free(); NULL: out of memory.
struct proto_applied *load_pushes(const struct replica_load *load);

#endif
