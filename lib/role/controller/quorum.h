// The controllers of a run, as one of them sees the others: its member of the Paxos register with
// its memory (cluster/record.h), a link to each of the others, and who leads.
//
// "The parameter servers are controlled by a set of parameter server (PS) controller machines
//  that form a Paxos cluster." (Adam 3.3.3)
//
// A controller alone agrees with itself: it has no links and no threads, and its file is made
// with its first state.
//
// Threads: one lets the register's time pass and takes the messages that came; one for each of
// the others dials it, as long as it takes. quorum_open and quorum_close belong to one thread;
// quorum_receive may be called by handlers of links, the others by any thread.
#ifndef ADAM_ROLE_CONTROLLER_QUORUM_H
#define ADAM_ROLE_CONTROLLER_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/agreed.h"
#include "core/gate.h"
#include "net/link.h"

struct error;
struct secrets; // net/secrets.h

struct quorum;

struct quorum_config {            // what it points to outlives the quorum
    const char *folder;           // that has the record
    const char *const *addresses; // of all controllers, in the same order for each of them
    uint32_t members, id;         // how many they are; which of them this one is
    bool rejoin;                  // as in struct paxos_config
    const struct secrets *keys;
    bool insecure;
    struct gate *gate; // opened when there is something new to be seen here
};

// Of several: reads the record, if there is one, and begins to take part. STATUS_DATA when it is
// damaged, STATUS_CANTCREATE when another process has it.
int quorum_open(struct quorum **out, const struct quorum_config *config, struct error *err);
// Of a controller alone: reads the record, if there is one. The caller sees to it that no other
// process does.
int quorum_recall(struct quorum *quorum, struct error *err);
// After listeners whose handlers use it are closed.
void quorum_close(struct quorum *quorum);

// Whether this controller leads, and knows the state that is agreed on: it may begin to.
bool quorum_ready(struct quorum *quorum);
// Whether it leads still. It stays true while it takes a higher ballot.
bool quorum_leads(struct quorum *quorum);
// Seconds for which a lease of `lease` seconds, given now, may run: it counts from when a majority
// was known to follow this controller. Not above 0: none may be given.
double quorum_lease(struct quorum *quorum, double lease);
// Of one that leads: clock_seconds after which no controller that led before gave leases. Those of
// a controller alone are its own from before its start.
double quorum_inherited(struct quorum *quorum);
// Who leads, as far as this one knows; PROTO_NOBODY.
uint32_t quorum_leader(struct quorum *quorum);
// Why it takes part no more: its record could not be written. STATUS_OK while it does.
int quorum_status(struct quorum *quorum, struct error *err);
// Whether it has no vote, as it has no record, though the others lead a run.
bool quorum_lacks_record(struct quorum *quorum);

// The newest state that is known to be agreed on, to be freed with free(), and its version.
// NULL: none, or memory is out.
char *quorum_state(struct quorum *quorum, uint64_t *version);
// Has a state agreed on, when this controller leads: STATUS_UNAVAILABLE when it does so no more,
// and the state may or may not be agreed on; else as record_propose. While it takes a higher ballot
// the state waits for that.
struct agreement quorum_agreement(struct quorum *quorum);

// What another controller must say in its hello: a hash of who they are.
uint64_t quorum_hash(const struct quorum *quorum);
// A message of another controller, which is copied. Does not wait.
void quorum_receive(struct quorum *quorum, struct link *link, const union proto_message *message);

// As relink_ask, of controller `id`, which is another one.
int quorum_ask(struct quorum *quorum, uint32_t id, struct link_request *request, struct error *err);

// Seconds since controller `id` was last heard; below 0: never.
double quorum_silence(struct quorum *quorum, uint32_t id);

#endif
