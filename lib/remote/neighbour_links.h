// The other workers of a replica, as one that has a partition of its model sees them
// (train/neighbours.h): pieces of passes go from where their sender has put them, and are read
// where they arrived. "accepts a pointer to a block of neurons whose output values need to be
// communicated across the network" (Adam 3.2.3)
//
// Each worker of a replica listens, and dials those of lower partitions. A link that breaks is not
// made anew: what was in flight is lost, and with it the replica, which is formed anew of workers
// that join the run anew.
//
// Threads: the functions are the owner's, but neighbour_links_stop, _status, _waits_for and
// _traffic, which are anybody's, and what _neighbours gives, which is the training loop's. Threads
// of the network put what arrives where the loop finds it; one of its own dials.
#ifndef ADAM_REMOTE_NEIGHBOUR_LINKS_H
#define ADAM_REMOTE_NEIGHBOUR_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/proto.h"
#include "train/neighbours.h"

struct error;
struct neighbour_links;
struct secrets;

struct neighbour_links_options { // texts outlive the links
    const char *listen;          // an address; of tcp, port 0 is any that is free
    const struct secrets *keys;
    bool insecure;
};

// Listens. Until it is told of a replica nobody is welcome. Statuses as listener_open.
int neighbour_links_open(struct neighbour_links **out,
                         const struct neighbour_links_options *options, struct error *err);
const char *neighbour_links_address(const struct neighbour_links *links);
// Nobody uses what _neighbours gave any more.
void neighbour_links_close(struct neighbour_links *links);

struct neighbour { // a worker of the replica, from partition 0 on
    uint64_t session;
    char name[PROTO_NAME_MAX + 1];
    char address[PROTO_ADDRESS_MAX + 1];
};

struct neighbour_replica {
    struct proto_hello hello; // as this one says it
    int partition, partitions;
    const struct neighbour *workers; // of all partitions; copied
    int places;                      // of passes in flight
    int flights;                     // of mini-batches in flight: `places`, or one
    int exchanges;                   // numbers of them are below that
    int batch;                       // samples of a mini-batch, at most
    int outputs;                     // of the model
    bool labels;                     // samples have one, of 0 to outputs - 1, and else targets
};

// Begins to reach the others. Once. STATUS_IO: out of memory.
int neighbour_links_form(struct neighbour_links *links, const struct neighbour_replica *replica,
                         struct error *err);
// Whether there is a link to each. The gate of _neighbours is opened when it changes.
bool neighbour_links_whole(struct neighbour_links *links);
// From when the replica is formed, until the links are closed.
const struct neighbours *neighbour_links_neighbours(struct neighbour_links *links);

// Breaks all links.
void neighbour_links_stop(struct neighbour_links *links);
// STATUS_OK while nobody is lost; else who, and why: STATUS_STOPPED, as the replica is no more.
int neighbour_links_status(struct neighbour_links *links, struct error *err);
// Whom it waits for: "partition 2 of 4, worker-6 at tcp://n07:7001: connection refused"; "":
// nobody.
void neighbour_links_waits_for(struct neighbour_links *links, char text[PROTO_ADDRESS_MAX]);
void neighbour_links_traffic(struct neighbour_links *links, uint64_t *received, uint64_t *sent);

#endif
