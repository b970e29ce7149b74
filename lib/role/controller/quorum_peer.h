// The way to another controller: a link that is dialled for as long as it takes, and again
// whenever it breaks. Messages that find no link are lost, as the register allows.
//
// Threads: one of its own dials. quorum_peer_send may be called by any thread, and does not wait.
#ifndef ADAM_ROLE_CONTROLLER_QUORUM_PEER_H
#define ADAM_ROLE_CONTROLLER_QUORUM_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/proto.h"

struct error;
struct secrets; // net/secrets.h

struct quorum_peer;

struct quorum_peer_config { // what it points to outlives the peer
    const char *address;
    uint64_t hash; // of who the controllers are, for the hello
    uint32_t id;   // of this controller
    const struct secrets *keys;
    bool insecure;
};

int quorum_peer_open(struct quorum_peer **peer, const struct quorum_peer_config *config,
                     struct error *err);
void quorum_peer_close(struct quorum_peer *peer);
void quorum_peer_send(struct quorum_peer *peer, const struct proto_paxos *message);

#endif
