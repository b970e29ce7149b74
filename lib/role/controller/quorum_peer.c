#include "role/controller/quorum_peer.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/gate.h"
#include "core/mem.h"
#include "net/link.h"

enum { DIAL = 1000 }; // milliseconds that the other has to welcome
static const double first_pause = 0.05, longest_pause = 0.5;

struct quorum_peer {
    struct quorum_peer_config config;
    pthread_t thread;
    struct gate gate; // it closes, or the link has broken
    _Atomic bool closing, broken;
    pthread_mutex_t lock;
    struct link *link; // NULL: none
};

static void link_closed(void *context, struct link *link, const char *why) {
    struct quorum_peer *peer = context;
    (void)link;
    (void)why;
    atomic_store(&peer->broken, true);
    gate_open(&peer->gate);
}

static struct link *set_link(struct quorum_peer *peer, struct link *link) {
    pthread_mutex_lock(&peer->lock);
    struct link *before = peer->link;
    peer->link = link;
    pthread_mutex_unlock(&peer->lock);
    return before;
}

static int dial_peer(struct quorum_peer *peer) {
    const struct link_options options = {
        .handlers = {.context = peer, .closed = link_closed},
        .keys = peer->config.keys,
        .insecure = peer->config.insecure,
    };
    char name[32];
    snprintf(name, sizeof name, "controller-%u", peer->config.id + 1);
    const struct proto_hello hello = {
        .role = PROTO_ROLE_CONTROLLER, .model = peer->config.hash, .name = proto_text(name)};
    struct link *link;
    atomic_store(&peer->broken, false);
    int status = link_dial(&link, peer->config.address, &options, &hello, DIAL, NULL, NULL);
    if (!status)
        set_link(peer, link);
    return status;
}

// Until the link breaks or the peer closes; without a link for so many seconds.
static void wait_for_end(struct quorum_peer *peer, bool linked, double seconds) {
    double until = clock_seconds() + seconds;
    for (uint32_t seen = gate_look(&peer->gate); !atomic_load(&peer->closing);
         seen = gate_look(&peer->gate)) {
        double left = linked ? -1 : until - clock_seconds();
        if (linked ? atomic_load(&peer->broken) : left <= 0)
            break;
        gate_wait(&peer->gate, seen, left);
    }
}

static void *peer_thread(void *context) {
    struct quorum_peer *peer = context;
    double pause = first_pause;
    while (!atomic_load(&peer->closing)) {
        bool linked = !dial_peer(peer);
        wait_for_end(peer, linked, pause);
        link_close(set_link(peer, NULL));
        pause = linked ? first_pause : fmin(2 * pause, longest_pause);
    }
    return NULL;
}

void quorum_peer_send(struct quorum_peer *peer, const struct proto_paxos *message) {
    pthread_mutex_lock(&peer->lock);
    if (peer->link)
        link_answer(peer->link, 0, PROTO_TYPE_PAXOS, message, NULL, NULL);
    pthread_mutex_unlock(&peer->lock);
}

int quorum_peer_open(struct quorum_peer **out, const struct quorum_peer_config *config,
                     struct error *err) {
    struct quorum_peer *peer = mem_zeroed(1, sizeof *peer);
    if (!peer)
        return error_nomem(err);
    peer->config = *config;
    pthread_mutex_init(&peer->lock, NULL);
    if (pthread_create(&peer->thread, NULL, peer_thread, peer)) {
        pthread_mutex_destroy(&peer->lock);
        free(peer);
        return error_set(err, STATUS_IO, "cannot start a thread");
    }
    *out = peer;
    return STATUS_OK;
}

void quorum_peer_close(struct quorum_peer *peer) {
    if (!peer)
        return;
    atomic_store(&peer->closing, true);
    gate_open(&peer->gate);
    pthread_join(peer->thread, NULL);
    pthread_mutex_destroy(&peer->lock);
    free(peer);
}
