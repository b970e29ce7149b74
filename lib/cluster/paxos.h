// The controllers' agreement: a Paxos register that holds their whole state.
//
// "The parameter servers are controlled by a set of parameter server (PS) controller
//  machines that form a Paxos cluster. The controller maintains in its replicated state
//  the configuration of parameter server cluster" (Adam 3.3.3)
//
// The state is small, so every command proposes the whole next state: there is no log, and
// nothing to truncate, compact or replay. States have versions 0, 1, 2...; for each committed
// version the members agree on one state, and each state is made from its predecessor.
// Membership is fixed: use 1, 3, 5 or 7 members.
//
// This is a pure step function: messages and the time go in; messages, a record to persist
// and committed states come out. It uses no sockets, files, clocks or threads, so tests
// simulate whole clusters with virtual time, lost messages and crashes. Nothing is allocated
// after paxos_open.
//
// The algorithm: ballots are round << 8 | member. A member that has not heard from a leader
// for an election timeout raises its ballot and sends PREPARE to the others. A majority of
// PROMISEs makes it the leader. Each promise carries the state that its sender accepted last;
// the new leader adopts the one with the highest (ballot, version), which may have been
// committed, and has it accepted under its own ballot before it serves anything. From then on
// it proposes one version at a time, and a version is committed when a majority has ACCEPTED
// it. A member that hears from a leader ignores candidates: otherwise a member that receives
// nothing would unseat every leader.
//
// What a leader does without the others' consent, as giving leases, it may only do for a bounded
// time after a majority answered it: its messages carry the time, and answers give it back
// (paxos_confirmed). Who answered it and then promises a higher ballot tells for how long it has
// not heard a leader. One of them is in each majority, so that a new leader knows a time after
// which no other was confirmed (paxos_inherited).
//
// A member without a record is blank: it may have made promises that it forgot, so it has no
// vote. It says so to the others, with a number of this start.
//
//  - When it has heard of each of the others that it was blank, too, during this start, nothing
//    was promised that anybody remembers: the cluster is new, and the member has its vote.
//  - Else it gets its vote back only when a person wants that (`rejoin`). The leader then takes
//    a ballot that is new since it heard of the wish. When all the others have accepted the state
//    under it, no ballot is alive for which a forgotten promise could count, and the leader admits
//    the member with this state and ballot.
#ifndef ADAM_CLUSTER_PAXOS_H
#define ADAM_CLUSTER_PAXOS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/random.h"
#include "proto/proto.h"

struct error;

#define PAXOS_MEMBERS_MAX 7

struct paxos_config {
    uint32_t id, members; // id is 0..members-1
    uint64_t seed;        // for its election timeouts
    uint32_t heartbeat;   // milliseconds between two heartbeats of a leader
    uint32_t election;    // milliseconds; timeouts are drawn from election to 2 election
    uint32_t state_max;   // bytes; at most what the message `paxos` carries
    uint64_t start;       // of a member without record: a random number, another at each start
    bool rejoin;          // of the same: it asks to be admitted anew
};

struct paxos_state {
    uint64_t version;
    const uint8_t *bytes; // the register's own
    uint32_t length;
};

// What a member must never forget: an acceptor that forgot it could break its promise.
struct paxos_record {
    uint64_t promised; // lower ballots are rejected
    uint64_t accepted; // the ballot under which the state was accepted
    struct paxos_state state;
};

// What one step asks of its caller, in this order: if `persist`, write the record to stable
// storage, or stop the member; then send the messages, any of which may be lost; then act on
// the committed state, if it is new. States in messages are valid until the next step. Messages
// that say `accept` may go before the record is written: their ballot is in it already, and the
// vote of their sender counts only in a later step.
struct paxos_output {
    bool persist;
    bool committed;
    uint32_t count;
    struct proto_paxos messages[PAXOS_MEMBERS_MAX];
};

enum paxos_standing { PAXOS_FOLLOWER, PAXOS_CANDIDATE, PAXOS_LEADER };

struct paxos;

// Starts a member, or restarts it from its record; NULL if it never ran. Times are
// milliseconds of a monotonic clock. STATUS_USAGE for an invalid configuration,
// STATUS_DATA for a record that does not fit it.
int paxos_open(struct paxos **paxos, const struct paxos_config *config,
               const struct paxos_record *record, uint64_t now, struct error *err);
void paxos_close(struct paxos *paxos);

// Handles a message from another member. Ignores what no member would send.
void paxos_receive(struct paxos *paxos, const struct proto_paxos *message, uint64_t now,
                   struct paxos_output *output);
// Lets time pass. Call at paxos_deadline or soon after; earlier calls do no harm.
void paxos_tick(struct paxos *paxos, uint64_t now, struct paxos_output *output);
// The leader proposes the next version of the state, made from paxos_committed.
// STATUS_UNAVAILABLE when this member does not lead, is not ready yet, or has a proposal in
// flight. The outcome is known when this or a later version is committed: a proposal may be
// committed even if this member stops leading meanwhile.
int paxos_propose(struct paxos *paxos, const void *state, uint32_t length, uint64_t now,
                  struct paxos_output *output, struct error *err);

// When paxos_tick is due next.
uint64_t paxos_deadline(const struct paxos *paxos);
// The record to persist, as it is now; valid until the next step.
struct paxos_record paxos_record(const struct paxos *paxos);
enum paxos_standing paxos_standing(const struct paxos *paxos);
// Whether the member has no vote, as it has no record.
bool paxos_blank(const struct paxos *paxos);
// Of a leader: when it sent what a majority has answered since; 0: not yet.
uint64_t paxos_confirmed(const struct paxos *paxos, uint64_t now);
// Of a leader: no other leader with a lower ballot is ever confirmed at a later time than this, nor
// was this member before it followed another or started. Times are intervals from now by the clocks
// of all members, so these must run alike.
uint64_t paxos_inherited(const struct paxos *paxos);
// True while this member may propose.
bool paxos_ready(const struct paxos *paxos);
// The leader, as far as this member knows, or PROTO_NOBODY.
uint32_t paxos_leader(const struct paxos *paxos);
// The newest state that this member knows to be committed, valid until the next step. False:
// none since the start.
bool paxos_committed(const struct paxos *paxos, struct paxos_state *state);

#endif
