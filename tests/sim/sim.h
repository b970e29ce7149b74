// A whole cluster in one process, single-threaded and with virtual time: controllers with the
// real Paxos register and placement, parameter servers with the real replica and, in some
// schedules, the real store, workers that push +1 to counters, readers, and a network, disks and a
// power supply that fail. Everything follows from a seed.
//
//   world.c        time, packets, the network
//   faults.c       what goes wrong, and the healing at the end
//   controllers.c  the register, members, leases, placement
//   servers.c      values of the shards, pushes and pulls
//   stores.c       disks of the servers, and when they are written
//   clients.c      workers and readers
//   checks.c       what must hold at each step and in the end
//   sim.c          the program; tests/unit/test_simulation.c runs a share of it
#ifndef ADAM_TESTS_SIM_H
#define ADAM_TESTS_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../helper/sim_disk.h"
#include "cluster/partings.h"
#include "cluster/paxos.h"
#include "cluster/placement.h"
#include "core/random.h"
#include "persist/persist.h"
#include "replica/replica.h"

enum {
    CONTROLLERS = 5, // at most of each
    SERVERS = 6,     //
    WORKERS = 3,     //
    READERS = 2,     //
    BUCKETS = 3,     //
    SHARDS = 5,      //
    COUNTERS = 4,    // of a shard, each a block
    PUSHES = 128,    // of a worker
    LIVING = 12,     // servers in the state
    FIRST_SERVER = CONTROLLERS,
    FIRST_CLIENT = FIRST_SERVER + SERVERS,
    NODES = FIRST_CLIENT + WORKERS + READERS,
    PACKETS = 1024, // under way
    LOADS = 512,    //
    STAMPS = 2048,  // known, a power of two
    EPOCHS = 512,   // of a bucket
    VERSIONS = 512, // of the register
    PENDING = 16,   // pushes of a server that wait
    INCARNATIONS = 64,
    TICK = 10,      // milliseconds
    LEASE = 80,     //
    GONE = 240,     // silence after which a server is gone
    HEALED = 20000, // milliseconds after which a healed cluster must be quiet
    STUCK = 100,    // milliseconds after which it matters that what is prepared is not installed
};

// The values of a shard, and which pushes made them.
struct values {
    int32_t counters[COUNTERS];
    uint64_t applied[WORKERS][PUSHES / 64];
    uint64_t version;
};

struct replica_load {
    uint32_t references;
    uint64_t blocks;      // that are sent
    struct values values; // all of them, to compare with
};

// What the controllers agree on.
struct agreed_server {
    uint32_t member;
    uint16_t slot, incarnation;
    bool draining;
};
struct agreed_state {
    uint64_t epoch;
    uint32_t next_member, count;
    bool assigned;
    struct agreed_server servers[LIVING]; // ascending
    uint16_t gone[SERVERS];               // by slot: incarnations up to this one were removed
    struct proto_place places[BUCKETS];
};

enum packet_kind {
    PACKET_TIMER,  // of the node itself
    PACKET_PAXOS,  //
    PACKET_JOIN,   // server to controllers
    PACKET_HEART,  // server to controllers
    PACKET_DRAIN,  // a person to controllers
    PACKET_ASK,    // client to controllers
    PACKET_PLACES, // controller to server or client
    PACKET_PROPOSE,
    PACKET_REPLICA,
    PACKET_FLUSH, // a server's own: a flush is over, or wanted
    PACKET_PUSH,
    PACKET_PULL,
    PACKET_ANSWER,
};

struct request { // push or pull, and its answer
    uint32_t client, sequence, shard;
    uint32_t mask; // counters that get +1
    uint64_t epoch;
    enum proto_refusal refusal;
    uint64_t version;
};

struct packet {
    enum packet_kind kind;
    uint8_t from, to;
    uint16_t incarnation; // of the server that its disk answers
    uint64_t sent;
    union {
        struct {
            struct proto_paxos message;
            struct agreed_state state;
        } paxos;
        struct {
            struct agreed_state state;
            uint64_t lease; // the holder's time
        } places;
        struct {
            uint32_t member, slot;
            uint16_t incarnation;
            bool empty; // a join: its store has nothing of the run
        } member;
        struct proto_proposal proposal;
        struct replica_message replica;
        bool flushed; // not: wanted
        struct request request;
    };
};

struct event {
    uint64_t at;
    uint32_t order;
    uint16_t packet;
};

struct node {
    bool up;
    uint64_t paused;            // until then
    uint64_t since;             // when that began, or the one shortly before
    uint64_t hindered;          // when something last kept it from a controller
    uint64_t beat[CONTROLLERS]; // of a server: when a heartbeat last came to each of them
};

struct controller {
    struct paxos *paxos; // NULL: down
    bool kept;
    struct paxos_record record; // on its disk
    struct agreed_state accepted;
    struct agreed_state state; // committed
    bool knows, leads;
    uint64_t version, since; // since: leading, or at work again
    uint64_t inherited;      // all leases that it does not know of were given until then
    uint64_t stepped;        // when it was at work last
    uint64_t early;          // which state it proposed to take from a primary with a lease
    uint64_t heard[SERVERS]; // by slot
    bool drain[SERVERS];     // wanted
    struct partings partings;
};

struct waiting { // a push that is applied and not answered
    bool any;
    struct request request;
    uint64_t version;
};

// A state of a shard: equal stamps imply equal values.
struct state {
    struct replica_stamp stamp;
    struct values values;
};

struct watched { // a shard, as the store has it
    struct replica_stamp stamp;
    uint64_t clean; // when it was last known to be as in the store
    bool dirty;
};

struct wish { // of the replica: that a shard is kept
    bool any;
    bool exact; // as it is prepared; else whatever it has by then
    struct replica_stamp stamp;
};

struct copy { // of a shard, on its way to the store
    uint32_t shard;
    struct state state;
    uint64_t taken; // when
    struct wish wish;
};

// The disk outlives the server's process; the rest does not.
struct store {
    struct sim_disk disk;
    struct persist *persist; // NULL: closed
    struct watched shards[SHARDS];
    struct {
        struct replica_stamp stamp;
        uint64_t since;
    } held[SHARDS];                // prepared, not installed: a flush does not have it
    uint64_t stuck, unstuck;       // the last time in which one was held for long
    struct state prepared[SHARDS]; // by the replica and to be kept, not installed
    struct wish wishes[SHARDS];
    struct copy copies[SHARDS];
    uint32_t copy_count; // under way
    bool woken;          // a flush is about to begin
    uint64_t rest;       // until then nothing is written: the disk failed
    uint64_t failing;    // when what cannot be written was copied; 0: all is well
    uint64_t lived;      // when the process was last at work
    // Of the disk:
    uint64_t mended; // when it works again
    uint64_t room;   // that it lacks meanwhile
    bool replaced;   // by another disk, and no controller knows yet
};

enum crash { CRASH_ORDERLY, CRASH_KILLED, CRASH_POWER };

struct server {
    struct world *world;
    uint32_t slot, member; // member 0: has not joined
    uint16_t incarnation;
    struct replica *replica;
    struct replica_host host;
    uint64_t lease; // as the replica has it
    struct values values[SHARDS];
    struct replica_stamp installed[SHARDS];
    uint64_t untold[SHARDS]; // blocks that pushes changed, of which the replica does not know yet
    struct waiting waiting[PENDING];
    struct agreed_state state;
    bool wants_places;
    uint32_t ticks;
};

enum push_state { PUSH_UNUSED, PUSH_SENT, PUSH_DONE, PUSH_DROPPED };

struct push {
    enum push_state state;
    uint32_t shard, mask;
    uint32_t copies; // packets of it that ever were
    uint64_t sent;
    uint64_t acknowledged; // when; 0: not yet
    bool excused;          // it may be lost
};

struct client {
    struct agreed_state state;
    bool wants_places;
    uint64_t seen[SHARDS]; // version...
    uint64_t when[SHARDS]; // ...in this epoch
    // A worker.
    uint32_t next, wanted; // pushes begun, and to be made
    struct push pushes[PUSHES];
    // A reader: one pull at a time.
    uint32_t pulls;
    bool pulling;
    uint64_t asked;
    struct request pull;
};

struct known_stamp {
    uint64_t run; // of the schedule that made it
    uint32_t shard;
    struct state state;
    uint64_t had[SERVERS]; // when each server last had it
};

struct world {
    uint64_t seed, run, now, events;
    bool trace, healed;
    struct random random;
    // The kind of schedule.
    uint32_t controller_count, server_count, worker_count, copies, shard_count, bucket_count;
    bool memory_ack, stored, durable; // stored: each server has a store
    uint32_t every;                   // milliseconds, of the flush setting
    uint32_t flush;                   // that a flush takes at most
    uint32_t loss, twice, slow, rate; // thousandths
    uint32_t slowness;                // milliseconds, at most, of a slow packet
    uint64_t heal_at;
    uint64_t faults_at;  // the next one
    uint64_t calm_until; // no cuts and stops until then
    // What is under way.
    struct packet packets[PACKETS];
    uint16_t free_packets[PACKETS];
    uint32_t free_packet_count;
    struct event heap[PACKETS];
    uint32_t heap_size, order;
    struct replica_load loads[LOADS];
    uint32_t next_load;
    bool cut[NODES][NODES];
    struct node nodes[NODES];
    struct controller controllers[CONTROLLERS];
    struct server servers[SERVERS];
    struct store stores[SERVERS];
    struct client clients[WORKERS + READERS];
    // The checks'.
    struct known_stamp stamps[STAMPS];
    uint32_t committer[BUCKETS][EPOCHS];
    uint64_t chosen[VERSIONS];
    uint64_t ballots[VERSIONS];       // under which leaders committed
    uint32_t ballot_count;            //
    uint32_t ballot_leader[VERSIONS]; // who
    uint64_t newest;                  // version that was committed
    struct agreed_state agreed;       // that one
    uint64_t served[BUCKETS];         // epoch since which the primary is another,
    uint64_t changed_at[BUCKETS];     // and when that was agreed
    uint64_t returned[BUCKETS];       // epoch since which a member has only what its store had
    uint64_t answered[SERVERS][INCARNATIONS]; // its store has what was acknowledged until then
    uint64_t stored_at[SERVERS];              // it has what the server had then, or later
    uint64_t none[SERVERS][SHARDS];           // when the shard last had no values
    uint64_t acked[SHARDS][WORKERS][PUSHES / 64];
    uint64_t acknowledged; // pushes
    char fault[256];       // the first one found
};

// world.c. One schedule; false when something did not hold (world->fault).
bool world_run(struct world *world, uint64_t seed, bool trace);
bool happens(struct world *w, uint32_t thousandths);
uint32_t drawn(struct world *w, uint32_t below);
// The packet arrives after this time, whatever the network does.
void packet_post(struct world *w, const struct packet *packet, uint64_t delay);
// The network may lose, double, delay and reorder it. Returns how often it will arrive.
int packet_send(struct world *w, const struct packet *packet);
void load_hold(void *self, struct replica_load *load);
void load_release(void *self, struct replica_load *load);
void trace(const struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

// faults.c.
void faults_begin(struct world *w);
void faults_step(struct world *w);

// controllers.c.
void controller_start(struct world *w, uint32_t i);
void controller_crash(struct world *w, uint32_t i);
void controller_receive(struct world *w, uint32_t i, const struct packet *packet);

// servers.c.
void server_start(struct world *w, uint32_t slot);
void server_end(struct world *w, uint32_t slot, enum crash how);
void server_receive(struct world *w, uint32_t slot, const struct packet *packet);
// What it has of a shard: of a primary the live values, of others what is installed.
struct state server_state(struct server *server, uint32_t shard);
bool server_is_primary(const struct server *server, uint32_t shard);
const struct agreed_server *state_server(const struct agreed_state *state, uint32_t member);
// The newest values that a server has of a shard.
const struct values *server_values(struct world *w, const struct server *server, uint32_t shard);

// stores.c. Opens the store, and gives the server what is in it. False: the disk fails.
bool store_open(struct server *server);
void store_close(struct server *server, enum crash how);
// replica_host.keep: as it is prepared; NULL: as it is by then.
void store_keep(struct server *server, uint32_t shard, struct replica_stamp stamp,
                const struct state *prepared);
// Looks at what changed, and begins a flush when it is due.
void store_tick(struct server *server);
// PACKET_FLUSH.
void store_receive(struct server *server, bool flushed);
// Whether pushes are told to come later: too much is at risk.
bool store_is_late(const struct server *server);
void store_break(struct world *w, uint32_t slot);
// Of a server that is down: its disk is another one, with nothing on it.
void store_replace(struct world *w, uint32_t slot);
void stores_mend(struct world *w, bool all);

// clients.c.
void client_receive(struct world *w, uint32_t i, const struct packet *packet);

// checks.c.
void fault(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void check_stamp(struct world *w, uint32_t shard, struct replica_stamp stamp,
                 const struct values *values);
const struct values *stamp_values(struct world *w, uint32_t shard, struct replica_stamp stamp);
// This server has the state now.
void check_has(struct world *w, uint32_t slot, uint32_t shard, const struct state *state);
// What its store has is as good: it need not write what it has now.
void check_counts(struct world *w, uint32_t slot, uint32_t shard, struct replica_stamp stored);
// "each shard at a state that it once had, not older than the window"
void check_restored(struct world *w, uint32_t slot, uint32_t shard, const struct state *state);
// Milliseconds after which what a server has is in its store.
uint64_t store_window(const struct world *w);
// The process of a server ends. What it had at `time`, and all that it had answered at `answered`,
// had to be flushed since.
void check_ended(struct world *w, uint32_t slot, uint64_t time, uint64_t answered);
void check_replicated(struct world *w, const struct server *server, uint32_t shard);
void check_serving(struct world *w, const struct server *server, uint32_t shard);
// Another takes the place of this primary.
void check_takeover(struct world *w, uint32_t controller, uint32_t member,
                    const struct agreed_state *next);
void check_acknowledged(struct world *w, const struct request *request);
void check_committed(struct world *w, uint64_t version, const struct agreed_state *state);
void check_leader(struct world *w, uint32_t controller, uint64_t ballot);
// Whether this server may lose its memory: another member of each of its buckets has all.
bool may_crash(struct world *w, uint32_t slot);
bool all_held(const struct world *w);
// Notes which servers something keeps from the controllers.
void check_reach(struct world *w);
bool is_quiet(struct world *w);
void check_end(struct world *w);

#endif
