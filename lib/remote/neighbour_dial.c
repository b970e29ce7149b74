// Links between the workers of a replica: each dials those of lower partitions.
#include <stdio.h>

#include "remote/neighbour_internal.h"
#include "remote/redial.h"

#define PAUSE 0.1 // seconds between two rounds of dialling

// --- who is called --------------------------------------------------------------------------

static struct neighbour_peer *find_caller(struct neighbour_links *links, uint64_t session) {
    const struct neighbour_replica *replica = &links->replica;
    for (int p = replica->partition + 1; p < replica->partitions; p++)
        if (links->peers[p].worker.session == session)
            return &links->peers[p];
    return NULL;
}

static bool same_run(const struct proto_hello *one, const struct proto_hello *other) {
    for (size_t i = 0; i < sizeof one->run.bytes; i++)
        if (one->run.bytes[i] != other->run.bytes[i])
            return false;
    return one->model == other->model;
}

// Whether it is the only link of that worker; it is held then.
static bool set_link(struct neighbour_peer *peer, struct link *link) {
    pthread_mutex_lock(&peer->links->lock);
    bool first = !peer->link;
    if (first) {
        link_hold(link);
        peer->link = link;
        peer->why[0] = '\0';
    }
    pthread_mutex_unlock(&peer->links->lock);
    return first;
}

enum proto_refusal neighbour_hello(void *context, struct link *link,
                                   const struct proto_hello *hello, struct proto_welcome *welcome,
                                   uint64_t *detail) {
    struct neighbour_links *links = context;
    const struct neighbour_replica *replica = &links->replica;
    *detail = 100;
    if (!atomic_load(&links->formed))
        return PROTO_REFUSAL_BUSY; // it does not know yet who is of its replica
    struct neighbour_peer *peer = find_caller(links, hello->session);
    if (hello->role != PROTO_ROLE_WORKER)
        return PROTO_REFUSAL_WRONG_ROLE;
    if (!peer || !same_run(hello, &replica->hello))
        return PROTO_REFUSAL_WRONG_SESSION;
    *welcome = (struct proto_welcome){
        .role = PROTO_ROLE_WORKER,
        .run = replica->hello.run,
        .model = replica->hello.model,
        .session = hello->session,
        .window = LINK_WINDOW,
        .name = replica->hello.name,
    };
    link_set_user(link, peer);
    if (!set_link(peer, link))
        return PROTO_REFUSAL_BUSY;
    link_know(link);
    gate_open(&links->gate);
    return PROTO_REFUSAL_NONE;
}

void neighbour_closed(void *context, struct link *link, const char *why) {
    struct neighbour_links *links = context;
    const struct neighbour_peer *peer = link_user(link);
    if (!atomic_load(&links->closing))
        neighbour_lose(links, peer, why);
}

// --- who dials ------------------------------------------------------------------------------

// A link that was dialled knows its peer by its handlers: requests may come before link_dial
// returns.
static void hear_dialled(void *context, struct link *link, uint64_t request, uint16_t type,
                         const union proto_message *message, struct buffer *payload) {
    neighbour_request(context, link, request, type, message, payload);
}

// One that is closed before link_dial has returned is no loss yet.
static void closed_dialled(void *context, struct link *link, const char *why) {
    struct neighbour_peer *peer = context;
    (void)link;
    pthread_mutex_lock(&peer->links->lock);
    bool linked = peer->link;
    peer->closed = true;
    pthread_mutex_unlock(&peer->links->lock);
    if (linked && !atomic_load(&peer->links->closing))
        neighbour_lose(peer->links, peer, why);
}

static void note_failure(struct neighbour_peer *peer, const struct error *err) {
    pthread_mutex_lock(&peer->links->lock);
    snprintf(peer->why, sizeof peer->why, "%.*s", (int)sizeof peer->why - 1, err->text);
    pthread_mutex_unlock(&peer->links->lock);
}

static void dial_peer(struct neighbour_peer *peer) {
    struct neighbour_links *links = peer->links;
    struct proto_welcome welcome;
    struct error err = {0};
    struct link *link;
    const struct link_options options = {
        .handlers = {.context = peer, .request = hear_dialled, .closed = closed_dialled},
        .pool = &links->pool,
        .keys = links->options.keys,
        .insecure = links->options.insecure,
    };
    peer->closed = false; // no link is there that could be
    if (link_dial(&link, peer->worker.address, &options, &links->replica.hello, REDIAL_MS, &welcome,
                  &err)) {
        note_failure(peer, &err);
        return;
    }
    pthread_mutex_lock(&links->lock);
    peer->link = link;
    peer->why[0] = '\0';
    bool closed = peer->closed;
    pthread_mutex_unlock(&links->lock);
    if (closed)
        neighbour_lose(links, peer, "it closed the connection");
    gate_open(&links->gate);
}

// Until there is a link to all of them.
void *neighbour_dial_thread(void *self) {
    struct neighbour_links *links = self;
    bool whole = false;
    while (!whole && !atomic_load(&links->closing) && !atomic_load(&links->lost)) {
        uint32_t seen = gate_look(&links->dial);
        whole = true;
        for (int p = 0; p < links->replica.partition && !atomic_load(&links->closing); p++)
            if (!links->peers[p].link) {
                dial_peer(&links->peers[p]);
                whole &= links->peers[p].link != NULL;
            }
        if (!whole)
            gate_wait(&links->dial, seen, PAUSE);
    }
    return NULL;
}
