// What the parts of the replicator share.
//
//   replicator.c       open and close, the thread, what the owner tells
//   replicator_send.c  messages to other servers, and their answers
//   replicator_hear.c  their messages, and the answers to these
//   replicator_keep.c  what is on its way to the store, and who waits for it
#ifndef ADAM_ROLE_PARAMSERVER_REPLICATOR_INTERNAL_H
#define ADAM_ROLE_PARAMSERVER_REPLICATOR_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "role/paramserver/load.h"
#include "role/paramserver/peers.h"
#include "role/paramserver/replicator.h"
#include "role/request_queue.h"

struct delivery; // a message on its way to another server, and its answer
struct keeping;  // a stamp on its way to the store

struct attended { // of a shard, with a store
    uint32_t keepings;
    struct queued_request *waiting; // to be answered when what it brought is kept; NULL: none
    struct delivery *deliveries;    // loads on their way to others
};

struct replicator {
    struct replicator_options options;
    struct peers *peers;
    pthread_t thread;
    struct gate work; // for the thread
    _Atomic bool closing;
    _Atomic uint64_t lease;    // runs until then, as replicator_now has it
    _Atomic uint64_t *applied; // a bit for each shard of which changes were told
    uint32_t shards;
    struct request_queue inbox;
    uint32_t listed; // the owner's: buckets of the first places; 0: none yet

    // The thread's own.
    struct load_place place;
    struct replica_host host;
    struct replica *replica;        // NULL: no places yet
    uint32_t buckets;               // that it has
    struct queued_request *hearing; // being heard, and not answered yet
    struct attended *attended;      // of each shard; NULL: nothing is kept
    uint64_t looked;                // when places were asked for last
    struct queued_request *early;   // of epochs that are to be told yet
    uint32_t early_count;
    bool outdated;                                     // what is being heard is such a one
    struct proto_proposal proposals[MEMBER_PROPOSALS]; // to be sent together
    uint32_t proposal_count;
    bool proposed; // something, with the tick before

    pthread_mutex_t lock;           // of all that follows
    struct kept *places;            // to be obeyed; NULL: none
    struct kept *members;           // of the run
    struct delivery *first, **last; // that were answered
    struct keeping *kept;
};

uint64_t replicator_now(void); // milliseconds
void replicator_wait_for_memory(void);
bool replicator_is_primary(const struct replicator *r, uint32_t shard);

// replicator_send.c
//
// Sends it, or loses it.
void replicator_send(struct replicator *r, const struct replica_message *message);
// Hands the answers that came to the replica.
void replicator_take_answers(struct replicator *r);

// replicator_hear.c
//
// Answers the request that is being heard, if the message does that.
void replicator_answer(struct replicator *r, const struct replica_message *message);
void replicator_take_requests(struct replicator *r);
// Hears again what came before the places did that it belongs to.
void replicator_take_early(struct replicator *r);
// At the end.
void replicator_forget_early(struct replicator *r);
// The request was heard. What the replica has no answer to was late, or waits for places or for the
// store. Takes it over.
void replicator_settle(struct replicator *r, struct queued_request *request);

// replicator_keep.c
//
// replica_host.keep
void replicator_keep(struct replicator *r, uint32_t shard, struct replica_stamp stamp,
                     struct replica_load *load);
// Tells the replica what was kept, and answers who waited for it.
void replicator_take_kept(struct replicator *r);
// What was kept too late.
void replicator_forget_kept(struct replicator *r);

#endif
