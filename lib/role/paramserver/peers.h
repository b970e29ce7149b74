// The other parameter servers, as one of them sees them: links to their replication addresses,
// by the numbers of members. Messages that find no link are lost, as replica/ allows.
//
// Threads: peers_set, peers_close and peers_free belong to the owner; the others may be called by
// any thread, and do not wait.
#ifndef ADAM_ROLE_PARAMSERVER_PEERS_H
#define ADAM_ROLE_PARAMSERVER_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/relink.h"
#include "proto/proto.h"

struct peers;

struct peers_options { // texts belong to the caller
    struct proto_hello hello;
    uint32_t member; // this server, to which there is no link
    const struct secrets *keys;
    bool insecure;
};

int peers_open(struct peers **out, const struct peers_options *options, struct error *err);
// Ends all links; what is known of them stays until peers_free. NULL: nothing.
void peers_close(struct peers *peers);
void peers_free(struct peers *peers); // closed; NULL: nothing

// The servers that there are: dials the new ones, and ends the links of those that are no more. May
// wait for a second.
int peers_set(struct peers *peers, const struct proto_list *servers, struct error *err);

// As link_ask, of a request with so many bytes of payload. STATUS_UNAVAILABLE also when there is no
// link to that member, or PEERS_BYTES are on their way to it: it takes them too slowly.
#define PEERS_BYTES (64 << 20)
struct peers_request {
    struct link_request link; // its context and done are the caller's
    uint32_t member;
    size_t bytes;
    struct peers_window *window; // its own
};
int peers_ask(struct peers *peers, struct peers_request *request, struct error *err);
// To be called by `done` of each request, and by nobody else.
void peers_done(struct peers_request *request);

// Bytes on the wire so far, on the links that this side dialled.
void peers_traffic(struct peers *peers, uint64_t *received, uint64_t *sent);

#endif
