// A member of a run, as every role but the controller is one: it finds the controller,
// joins, tells how it is doing, and hears what changed and what is wanted.
//
//   hello -> join -> joined(member, session) -> heartbeat -> beat -> heartbeat ...
//
// `beat` carries the epochs of the membership, the routes and the settings. When one is
// not what is here, the newest is fetched; it is handed out as a snapshot that never
// changes (proto/kept.h), so that data paths hold one for as long as they like.
//
// A broken link is dialled again, with growing pauses, in the same session: "A member that
// loses its link to the controller" goes on with what it has meanwhile, for as long as the
// setting controller-patience says. @FILE is read anew each time, so that a restarted
// controller is found; of several controllers each is dialled in turn until one leads. Where the
// file is gone, and DONE lies beside it, the run is done: the member hears the order to stop that
// it missed. Before it has joined it dials for ever.
//
// Threads: one thread of the member's own does all this, and calls the hooks. All
// functions may be called by any thread, handlers of links included, but member_open and
// member_close: they are the owner's. None of the others waits, except member_wait.
#ifndef ADAM_MEMBER_MEMBER_H
#define ADAM_MEMBER_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/kept.h"

struct error;

struct member;
struct secrets; // net/secrets.h

struct member_hooks {
    void *self;
    // A line for the user: who was lost, whom one waits for, who came back. NULL: silent.
    void (*say)(void *self, const char *text);
    // How the role is doing, asked for before each heartbeat. All is zero, `loss` is NAN
    // and `session` is set. Texts must last until the next call. NULL: STATE_WORKING.
    void (*figures)(void *self, struct proto_heartbeat *figures);
    // Of a parameter server with a store, before it joins: the shards of this run that it has, to
    // be freed with free(). NULL: not asked.
    int (*held)(void *self, const struct proto_id *run, struct proto_held **shards, uint32_t *count,
                struct error *err);
    // The controller's lease on the buckets of which the member is the primary runs until then
    // (clock_seconds). NULL: not needed.
    void (*lease)(void *self, double until);
};

struct member_options { // texts belong to the caller, and outlive the member
    enum proto_role role;
    const char *controller; // as ready_find takes it (net/ready.h)
    const char *name;       // for people
    uint32_t threads;
    uint64_t memory;
    uint64_t first, samples;  // of a data server: those that it serves
    uint64_t whole;           // of the same: of so many of the data set, which these tell from
    uint32_t digest, classes; // others
    const char *training, *replication, *administration; // as bound (listener_address); NULL: none
    const struct secrets *keys;
    bool insecure;
    bool stores;  // of a parameter server: what it holds outlives it, under its name
    bool parts;   // of the same: it has a folder for parts of checkpoints that stay with it
    bool members; // fetch who the members are, too (member_members)
    // Of a parameter server: milliseconds from one asking for places and lease to the next; 0: it
    // does not ask.
    uint32_t places;
    struct member_hooks hooks;
};

// Returns at once; the joining goes on by itself. STATUS_USAGE: a name or an address is none.
int member_open(struct member **member, const struct member_options *options, struct error *err);
// Sends the reports that are left, leaves and ends, after at most two seconds. With NULL
// for a reason it does not leave: the controller waits for it to come back.
void member_close(struct member *member, const char *reason);

// What happens is counted: joining, a new snapshot, an order, an end. Who keeps the
// number that was last seen learns cheaply whether to look again.
uint32_t member_news(const struct member *member);
// Waits for news after `seen`; returns as gate_wait does (core/gate.h).
void member_wait(struct member *member, uint32_t seen, double seconds);

// STATUS_OK while all is well, with the controller or without it. Otherwise the member has
// ended, and why: STATUS_STOPPED when its session is over (it was silent for too long: run
// it again and it joins anew) or the controller is stopping, STATUS_UNAVAILABLE when the
// controller is of another run by now, will not have this member, or stayed away for too long.
int member_status(struct member *member, struct error *err);

struct member_identity {
    struct proto_id run;
    uint64_t model; // hash of the model's text
    uint64_t session;
    uint32_t member;             // its number
    uint32_t heartbeat, silence; // milliseconds, as in joined
    uint32_t epoch;              // of a data server: the first in which its samples are wanted
    uint32_t replica, partition; // of a worker, as in joined
};
// False before it has joined.
bool member_identity(struct member *member, struct member_identity *identity);

// The newest of each, for kept_drop when done with; NULL: none yet.
struct kept *member_run(struct member *member);     // message.run: model and settings
struct kept *member_routes(struct member *member);  // message.routes
struct kept *member_members(struct member *member); // message.status
struct kept *member_places(struct member *member);  // message.places, all of them

// An order, once: false when there is none that was not taken before.
struct member_order {
    enum proto_order order;
    uint64_t number;
};
bool member_take_order(struct member *member, struct member_order *order);

// Whether the run has had its first weights, as the last heartbeat said.
bool member_begun(const struct member *member);

// Asks the controller now whether something changed, instead of with the next heartbeat
// (a route was refused, a session is not known). What was new when member_look was called
// is there when member_looked has reached the number that it returned: tests wait for that.
uint64_t member_look(struct member *member);
uint64_t member_looked(const struct member *member);

// Asks for places and lease now.
void member_look_places(struct member *member);
// All that a parameter server wants of the controller now: sent soon and once, in the place of what
// it wanted before. Beyond MEMBER_PROPOSALS they are forgotten.
#define MEMBER_PROPOSALS 4096
void member_propose(struct member *member, const struct proto_proposal *proposals, uint32_t count);

// Sends a line of metrics, in its turn. While there is no controller up to
// MEMBER_REPORTS lines wait, then the oldest give way. (One may come twice when the link
// broke before its answer.) STATUS_IO when memory is out, STATUS_DATA when it is too long.
#define MEMBER_REPORTS 1024
int member_report(struct member *member, const char *line, struct error *err);

#endif
