// A parameter server's part in replication: the thread that the replica (replica/) belongs to, and
// all that it needs of the server. What is applied to its shards (ps/) is brought to the other
// servers of their buckets over the replication addresses, and what those send is installed.
//
// "The primary machine replicates changes to shards within a bucket to
//  all secondary machines via a 2 phase commit protocol." (Adam 3.3.3)
// "Each parameter server machine has three (it uses separate) network paths" (Adam 3.3.4): all of
// it uses the one for other parameter servers.
//
// Threads: the owner opens, routes and closes it; its own thread does the rest. replicator_hear is
// called by threads of the network, and replicator_applied by those of ps/: neither waits.
#ifndef ADAM_ROLE_PARAMSERVER_REPLICATOR_H
#define ADAM_ROLE_PARAMSERVER_REPLICATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "member/member.h"
#include "net/link.h"
#include "replica/replica.h"

struct error;
struct flusher;
struct ps;

struct replicator;

struct replicator_options { // what it points to outlives the replicator
    struct ps *ps;
    struct member *member; // of the run: it is told what is proposed
    struct member_identity identity;
    const char *name;  // of this server
    size_t parameters; // of the model
    int states;        // that its rule keeps
    // Whether pushes are answered when all copies have them. Otherwise changes may gather for a
    // while before they are sent.
    bool replicates;
    struct flusher *keeper; // of the store that has what is to be kept; NULL: none
    bool delayed;           // not ack = durable: only what a joiner is sent whole must be kept
    const struct secrets *keys;
    bool insecure;
};

// What the shards of `ps` have by now is what it begins with. STATUS_IO: out of memory or threads.
int replicator_open(struct replicator **out, const struct replicator_options *options,
                    struct error *err);
// After it nothing is sent or installed any more, and the keeper and `ps` may be closed; then
// replicator_free be called, since these may call until then. NULL: nothing.
void replicator_close(struct replicator *replicator);
void replicator_free(struct replicator *replicator);

// Who has which bucket (message.places). Takes over the reference. STATUS_DATA: it is no list of
// all buckets.
int replicator_route(struct replicator *replicator, struct kept *places, struct error *err);
// The members of the run (message.status): who may speak for which. Takes over the reference.
void replicator_know(struct replicator *replicator, struct kept *members);
// The other parameter servers. STATUS_IO.
int replicator_meet(struct replicator *replicator, const struct proto_routes *routes,
                    struct error *err);

// The lease of this server runs until then (clock_seconds). Any thread.
void replicator_lease(struct replicator *replicator, double until);

// A request at the replication address, by the link's session.
void replicator_hear(struct replicator *replicator, struct link *link, uint64_t session,
                     uint64_t request, uint16_t type, const union proto_message *message,
                     struct buffer *payload);

// Bytes on the wire so far, on the links to other servers that this one dialled. Any thread.
void replicator_traffic(struct replicator *replicator, uint64_t *received, uint64_t *sent);

// ps_copies.applied
void replicator_applied(struct replicator *replicator, uint32_t shard);

#endif
