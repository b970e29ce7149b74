// Shared by the parts of the client of parameter servers. For lib/remote/servers_*.c only.
//
//   servers_client.c    routes, and which request goes where
//   servers_peer.c      one server, its link, and the thread that dials it
//   servers_exchange.c  exchanges, from their layout to their end
//   servers_request.c   requests of them, and what the answers mean
//
// One lock for all lists and counts. It is never held while a link is asked, dialled or
// closed, nor while a hook is called.
#ifndef ADAM_REMOTE_SERVERS_INTERNAL_H
#define ADAM_REMOTE_SERVERS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "core/error.h"
#include "core/gate.h"
#include "net/link.h"
#include "remote/servers_client.h"

// Seconds between two looks at what a wait is for, and until who is stopping is asked again.
#define SERVERS_TICK 1.0

TAILQ_HEAD(shard_request_queue, shard_request);

// One server, and the thread that dials it.
struct peer {
    struct servers *servers;
    struct peer *next;
    uint32_t member, place, places; // number in the run; place among so many servers, from 1
    char address[PROTO_ADDRESS_MAX];
    pthread_t thread;
    bool started;
    struct gate gate; // something for the thread to do
    struct link *link;
    bool broken;                      // the link is, or must be, closed
    bool dialled;                     // once at least
    uint32_t in_flight, window;       // requests; and how many may be
    uint32_t patient;                 // of those that fly, pulls that wait for newer weights
    struct shard_request_queue queue; // to be sent
    char why[LINK_WHY];               // the last failure; "": none
    double next_dial, pause;          // seconds: not before; after the next failure
    uint64_t received, sent;          // of links that are closed
};

// What one request is about: pieces of one shard. Those of one layer that go to one server
// as factors are chained to one request.
struct shard_request {
    struct exchange *exchange;
    struct link_request ask;
    uint32_t shard;
    size_t first, count; // spans of the exchange, `floats` in all
    size_t floats;
    size_t part_count; // of the payload, from part `first` of the exchange on
    bool over;
    bool unsure;              // it was sent before, and may have been carried out
    bool came;                // of pulls: numbers came, and are where they were wanted
    uint64_t epoch;           // of the shard's bucket, as it was sent last
    struct shard_stamp stamp; // of pulls: here, then there; else of the weights that it is about
    uint64_t reached;         // of pushes: the version that the shard has with it; 0: not known
    double due;               // seconds: not before
    uint16_t refusal;         // the last one, 0: none
    struct peer *peer;        // to which it goes; NULL: nobody is known
    TAILQ_ENTRY(shard_request) queued;
    struct shard_request *chain; // in a request
};

enum exchange_op { EXCHANGE_OP_PULL, EXCHANGE_OP_PUSH, EXCHANGE_OP_FACTORS, EXCHANGE_OP_STORE };

struct exchange {
    struct servers *servers;
    enum exchange_way way;
    struct placed_span *spans; // each within one shard
    size_t span_count;
    struct link_part *parts; // of payloads: at most one for each span; of factors two
    struct shard_request *requests;
    size_t request_count;
    _Atomic size_t left; // requests under way
    bool started;
    int status;   // how it ends
    bool refused; // so that it was not carried out
    struct error err;
    // What it was started with.
    enum exchange_op op;
    struct pull pull;
    struct push push;
    struct push_factors factors;
    struct store store;
    uint64_t sequence;
};

struct servers {
    struct servers_options options;
    char name[PROTO_NAME_MAX + 1];
    pthread_mutex_t lock;
    struct gate gate; // an exchange is over, or all must end
    struct kept *routes;
    struct peer *peers;
    struct shard_request_queue lost; // whose servers are not known
    bool stopping;
    uint64_t sequence;
    struct servers_figures figures;
    char waits_for[PROTO_ADDRESS_MAX];
};

// servers_client.c. Puts the request where it belongs by the routes; under the lock.
void servers_dispatch(struct servers *servers, struct shard_request *request);
// The same of one that was sent before: where it goes to another server by now, that server's
// thread is woken, since whoever got the answer only looks after the server that gave it.
void servers_redispatch(struct servers *servers, struct shard_request *request);
// Sends what is due to those who can be sent to, and wakes the threads of the others.
void servers_pump(struct servers *servers);
// The routes as they are, held for the caller; NULL: none.
struct kept *servers_routes(struct servers *servers);
// Says that newer routes are wanted than these; not under the lock.
void servers_stale(struct servers *servers);
// Takes all requests of the exchange off the queues, and ends them; under the lock.
void servers_sweep(struct servers *servers, const struct exchange *exchange);

// servers_peer.c
int peer_open(struct peer **out, struct servers *servers, const struct proto_server *server,
              struct error *err);
void peer_close(struct peer *peer);
void peer_pump(struct peer *peer);

// servers_request.c. Sends the request, and those chained to it. Otherwise than with
// STATUS_OK nothing was sent; with it they may be over already.
int shard_request_send(struct shard_request *request, struct link *link, struct error *err);
// The requests' exchanges are over as far as these go; under the lock.
void shard_request_end(struct shard_request *request);
void shard_request_fail(struct shard_request *request, int status, const char *text);
// Whether its answer may take as long as others' updates.
bool shard_request_patient(const struct shard_request *request);
// May the second go with the first in one request?
bool shard_request_joins(const struct shard_request *leader, const struct shard_request *request,
                         size_t spans);

#endif
