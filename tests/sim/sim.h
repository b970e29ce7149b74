// A whole cluster in one process, single-threaded and with virtual time: controllers with the
// real Paxos register and placement, parameter servers with the real replica, workers that push
// +1 to counters, readers, and a network and disks that fail. Everything follows from a seed.
//
//   world.c        time, packets, the network
//   faults.c       what goes wrong, and the healing at the end
//   controllers.c  the register, members, leases, placement
//   servers.c      values of the shards, pushes and pulls
//   clients.c      workers and readers
//   checks.c       what must hold at each step and in the end
//   sim.c          the program; tests/unit/test_simulation.c runs a share of it
#ifndef ADAM_TESTS_SIM_H
#define ADAM_TESTS_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/paxos.h"
#include "cluster/placement.h"
#include "core/random.h"
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
    TICK = 10,      // milliseconds
    LEASE = 80,     //
    GONE = 240,     // silence after which a server is gone
    STALE = 300,    // for which a leader may give leases that is none any more
    HEALED = 20000, // milliseconds after which a healed cluster must be quiet
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
    PACKET_KEPT, // a server's own disk
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
        } member;
        struct proto_proposal proposal;
        struct replica_message replica;
        struct {
            uint32_t shard;
            struct replica_stamp stamp;
        } kept;
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
    uint64_t paused; // until then
};

struct controller {
    struct paxos *paxos; // NULL: down
    bool kept;
    struct paxos_record record; // on its disk
    struct agreed_state accepted;
    struct agreed_state state; // committed
    bool knows, leads;
    uint64_t version, since; // since: leading
    uint64_t heard[SERVERS]; // by slot
    bool drain[SERVERS];     // wanted
};

struct waiting { // a push that is applied and not answered
    bool any;
    struct request request;
    uint64_t version;
};

struct disk_shard {
    bool any;
    struct replica_stamp stamp;
    struct values values;
};

struct server {
    struct world *world;
    uint32_t slot, member; // member 0: has not joined
    uint16_t incarnation;
    struct replica *replica;
    struct replica_host host;
    struct values values[SHARDS];
    struct replica_stamp installed[SHARDS];
    uint64_t untold[SHARDS]; // blocks that pushes changed, of which the replica does not know yet
    struct waiting waiting[PENDING];
    struct agreed_state state;
    struct disk_shard disk[SHARDS];
    bool wants_places;
    uint32_t ticks;
};

enum push_state { PUSH_UNUSED, PUSH_SENT, PUSH_DONE, PUSH_DROPPED };

struct push {
    enum push_state state;
    uint32_t shard, mask;
    uint32_t copies; // packets of it that ever were
    uint64_t sent;
};

struct client {
    struct agreed_state state;
    bool wants_places;
    uint64_t seen[SHARDS]; // version
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
    struct replica_stamp stamp;
    struct values values;
};

struct world {
    uint64_t seed, run, now, events;
    bool trace, healed;
    struct random random;
    // The kind of schedule.
    uint32_t controller_count, server_count, worker_count, copies, shard_count, bucket_count;
    bool memory_ack, durable;
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
// With or without what was in its memory on its disk.
void server_crash(struct world *w, uint32_t slot, bool flushed);
void server_receive(struct world *w, uint32_t slot, const struct packet *packet);
const struct agreed_server *state_server(const struct agreed_state *state, uint32_t member);
// The newest values that a server has of a shard.
const struct values *server_values(struct world *w, const struct server *server, uint32_t shard);

// clients.c.
void client_receive(struct world *w, uint32_t i, const struct packet *packet);

// checks.c.
void fault(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void check_stamp(struct world *w, uint32_t shard, struct replica_stamp stamp,
                 const struct values *values);
const struct values *stamp_values(const struct world *w, uint32_t shard,
                                  struct replica_stamp stamp);
void check_replicated(struct world *w, const struct server *server, uint32_t shard);
void check_serving(struct world *w, const struct server *server, uint32_t shard);
void check_acknowledged(struct world *w, const struct request *request);
void check_committed(struct world *w, uint64_t version, const struct agreed_state *state);
void check_leader(struct world *w, uint32_t controller, uint64_t ballot);
// Whether this server may lose its memory: another member of each of its buckets has all.
bool may_crash(struct world *w, uint32_t slot);
bool is_quiet(struct world *w);
void check_end(struct world *w);

#endif
