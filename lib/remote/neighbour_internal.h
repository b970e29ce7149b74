// Shared by the parts of the links to the workers of a replica. For lib/remote/neighbour_*.c only.
//
//   neighbour_links.c    beginning and end; who is lost
//   neighbour_dial.c     links are made: by who dials, and by who is called
//   neighbour_wire.c     pieces of passes
//   neighbour_flights.c  mini-batches that all pass
#ifndef ADAM_REMOTE_NEIGHBOUR_INTERNAL_H
#define ADAM_REMOTE_NEIGHBOUR_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "core/error.h"
#include "core/gate.h"
#include "core/pool.h"
#include "net/link.h"
#include "remote/neighbour_links.h"

enum {
    NEIGHBOUR_FLIGHT_PARTS = 5
}; // of a mini-batch: draws, labels, targets, other labels, shares

// A piece that goes out. The loop's, until it is on its way.
struct outgoing {
    struct link_request ask;
    struct link_part part;
    struct proto_exchange message;
    struct neighbour_peer *peer;
    atomic_bool busy;
    STAILQ_ENTRY(outgoing) queued;
};

// One that has come. The network's thread sets the payload, and the loop takes it away.
struct incoming {
    _Atomic(struct buffer *) payload;
    uint64_t request;
};

// What a neighbour was told of a mini-batch: the loop's, until it is on its way.
struct told {
    struct link_request ask;
    struct link_part parts[NEIGHBOUR_FLIGHT_PARTS];
    struct proto_fly message;
    struct neighbour_peer *peer;
    atomic_bool landed;
    double loss;
    bool refused;
};

// What was heard of one, from the first partition: as `incoming`.
struct heard {
    atomic_bool there;
    struct buffer *payload; // NULL: of no samples
    uint64_t request;
    struct proto_fly message;
    struct batch batch;
};

struct neighbour_peer {
    struct neighbour_links *links;
    int partition;
    struct neighbour worker;
    struct link *link; // under the lock of the links, as the next two
    bool closed;       // the link that is being dialled, or was
    char why[LINK_WHY];
    struct outgoing *outgoing; // of each place, exchange and direction
    struct incoming *incoming;
    struct told *told; // of each flight
    // Under its own lock: what would be more requests in flight than a link has.
    pthread_mutex_t lock;
    uint32_t in_flight;
    STAILQ_HEAD(outgoing_queue, outgoing) queue;
};

struct neighbour_end { // the wire of a place
    struct neighbour_links *links;
    struct net_wire wire;
    int place;
};

struct neighbour_links {
    struct neighbour_links_options options;
    struct listener *listener;
    struct pool pool;
    struct gate gate;
    pthread_mutex_t lock; // of links, of the reasons, and of `err`
    struct error err;     // why somebody is lost
    atomic_bool formed, lost, closing;
    struct gate dial;
    pthread_t dialler;
    bool dialling;
    // Of the replica, from when it is formed.
    struct neighbour_replica replica;
    char name[PROTO_NAME_MAX + 1]; // of this side, in its hello
    struct neighbour_peer *peers;  // of each partition; that of its own is empty
    struct neighbour_end *ends;
    struct heard *heard; // of each flight
    struct neighbours neighbours;
};

// Somebody is lost; the first reason counts.
void neighbour_lose(struct neighbour_links *links, const struct neighbour_peer *peer,
                    const char *why);
// The link to a peer, held for the caller; NULL: none.
struct link *neighbour_link(struct neighbour_peer *peer);

// A request of this peer, by any link to it.
void neighbour_request(struct neighbour_peer *peer, struct link *link, uint64_t request,
                       uint16_t type, const union proto_message *message, struct buffer *payload);
// Answers a request of the peer, who is lost otherwise.
void neighbour_answer(struct neighbour_peer *peer, uint64_t request, uint16_t type,
                      const void *message);

// neighbour_dial.c
enum proto_refusal neighbour_hello(void *context, struct link *link,
                                   const struct proto_hello *hello, struct proto_welcome *welcome,
                                   uint64_t *detail);
void neighbour_closed(void *context, struct link *link, const char *why);
void *neighbour_dial_thread(void *self);

// neighbour_wire.c
void neighbour_wire_open(struct neighbour_end *end, struct neighbour_links *links, int place);
void neighbour_hear_piece(struct neighbour_peer *peer, uint64_t request,
                          const struct proto_exchange *message, struct buffer *payload);

// neighbour_flights.c
void neighbour_flights_open(struct neighbour_links *links);
void neighbour_hear_flight(struct neighbour_peer *peer, uint64_t request,
                           const struct proto_fly *message, struct buffer *payload);

#endif
