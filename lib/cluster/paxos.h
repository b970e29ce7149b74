// The controllers' agreement: a Paxos register that holds their whole state.
//
// "The parameter servers are controlled by a set of parameter server (PS) controller
//  machines that form a Paxos cluster. The controller maintains in its replicated state
//  the configuration of parameter server cluster" (Adam 3.3.3)
//
// The state is small, so every command proposes the whole next one: there is no log, and
// nothing to truncate, compact or replay. States have versions 0, 1, 2...; the members
// agree on one state for each version that is committed, and each is made from the one
// before. The members are fixed: 1, 3, 5 or 7 of them make sense.
//
// This is a pure step function. Messages and the time go in; messages, a record to be
// kept and committed states come out. It knows no sockets, files, clocks or threads, so
// tests run whole clusters of it with virtual time, lost messages and crashes. The controller
// is a cluster of one member: only tests call paxos_receive and paxos_leader. Nothing is
// allocated after paxos_open.
//
// How it goes. Ballots are round << 8 | member. A member that hears of no leader for a
// while raises its ballot and asks the others to PREPARE for it. A majority of PROMISEs
// makes it leader: they say what was accepted before, and the leader adopts the state
// with the highest (ballot, version), for that one may have been committed, and has it
// accepted under its own ballot before it serves anything. From then on it proposes one
// version after the other, and each is committed when a majority has ACCEPTED it.
// A member ignores candidates while it hears of a leader: one that cannot hear the
// others would otherwise unseat every leader.
#ifndef ADAM_CLUSTER_PAXOS_H
#define ADAM_CLUSTER_PAXOS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/random.h"
#include "proto/proto.h"

#define PAXOS_MEMBERS_MAX 7

struct paxos_config {
    uint32_t id, members; // id is 0..members-1
    uint64_t seed;        // of its election timeouts
    uint32_t heartbeat;   // milliseconds between two of a leader
    uint32_t election;    // without any, an election begins after this long, or up to twice
    uint32_t state_max;   // bytes; at most what the message `paxos` carries
};

struct paxos_state {
    uint64_t version;
    const uint8_t *bytes; // the register's own
    uint32_t length;
};

// What a member must never forget: an acceptor that did would break every promise.
struct paxos_record {
    uint64_t promised; // no ballot below it is answered any more
    uint64_t accepted; // ballot of the state
    struct paxos_state state;
};

// What one step asks of its caller, in this order: if `persist`, the record is written
// and is safe on the disk, or the member stops; then the messages are sent, any of which
// may be lost; then the committed state, if new, is acted upon. States in messages are
// valid until the next step.
struct paxos_output {
    bool persist;
    bool committed;
    uint32_t count;
    struct proto_paxos messages[PAXOS_MEMBERS_MAX];
};

enum paxos_standing { PAXOS_FOLLOWER, PAXOS_CANDIDATE, PAXOS_LEADER };

struct paxos;

// A member as it starts, or starts again: with its record, or NULL if it never ran.
// Times are milliseconds of any clock that does not jump. STATUS_USAGE for a
// configuration that makes no sense, STATUS_DATA for a record that does not fit it.
int paxos_open(struct paxos **paxos, const struct paxos_config *config,
               const struct paxos_record *record, uint64_t now, struct error *err);
void paxos_close(struct paxos *paxos);

// A message from another member. What no member would send is ignored.
void paxos_receive(struct paxos *paxos, const struct proto_paxos *message, uint64_t now,
                   struct paxos_output *output);
// The time is `now`. Called at paxos_deadline or soon after; more often does no harm.
void paxos_tick(struct paxos *paxos, uint64_t now, struct paxos_output *output);
// The leader proposes the next version of the state, made from paxos_committed.
// STATUS_UNAVAILABLE when this member cannot: it does not lead, or not yet, or its last
// proposal is still on its way. Whether a proposal came to be is known when it is
// committed, or a later one: it may be even if this member stops to lead meanwhile.
int paxos_propose(struct paxos *paxos, const void *state, uint32_t length, uint64_t now,
                  struct paxos_output *output, struct error *err);

uint64_t paxos_deadline(const struct paxos *paxos);
// What must be kept, as it is now; valid until the next step.
struct paxos_record paxos_record(const struct paxos *paxos);
enum paxos_standing paxos_standing(const struct paxos *paxos);
// True while this member may propose.
bool paxos_ready(const struct paxos *paxos);
// The member that leads, as far as is known here, or PROTO_NOBODY.
uint32_t paxos_leader(const struct paxos *paxos);
// The newest state that is known here to be committed, valid until the next step; false:
// none is yet since the start.
bool paxos_committed(const struct paxos *paxos, struct paxos_state *state);

#endif
