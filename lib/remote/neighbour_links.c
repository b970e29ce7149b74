#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "remote/neighbour_internal.h"

// --- who is lost ----------------------------------------------------------------------------

void neighbour_lose(struct neighbour_links *links, const struct neighbour_peer *peer,
                    const char *why) {
    pthread_mutex_lock(&links->lock);
    if (!links->err.status)
        error_set(&links->err, STATUS_STOPPED, "partition %d of its model, %s at %s, is lost: %s",
                  peer->partition, peer->worker.name, peer->worker.address, why);
    pthread_mutex_unlock(&links->lock);
    atomic_store(&links->lost, true);
    gate_open(&links->gate);
}

struct link *neighbour_link(struct neighbour_peer *peer) {
    pthread_mutex_lock(&peer->links->lock);
    struct link *link = peer->link;
    if (link)
        link_hold(link);
    pthread_mutex_unlock(&peer->links->lock);
    return link;
}

void neighbour_answer(struct neighbour_peer *peer, uint64_t request, uint16_t type,
                      const void *message) {
    struct link *link = neighbour_link(peer);
    struct error err = {0};
    if (link && link_answer(link, request, type, message, NULL, &err))
        neighbour_lose(peer->links, peer, err.text);
    if (link)
        link_drop(link);
}

int neighbour_links_status(struct neighbour_links *links, struct error *err) {
    pthread_mutex_lock(&links->lock);
    int status = links->err.status;
    if (status && err)
        *err = links->err;
    pthread_mutex_unlock(&links->lock);
    return status;
}

static bool is_lost(void *self) {
    return atomic_load(&((struct neighbour_links *)self)->lost);
}

void neighbour_links_stop(struct neighbour_links *links) {
    if (!links || !atomic_load(&links->formed))
        return;
    for (int p = 0; p < links->replica.partitions; p++) {
        struct neighbour_peer *peer = &links->peers[p];
        struct link *link = peer->links ? neighbour_link(peer) : NULL;
        if (!link)
            continue;
        link_break(link, "stopped");
        link_drop(link);
    }
    atomic_store(&links->lost, true);
    gate_open(&links->gate);
}

// --- the replica ----------------------------------------------------------------------------

static bool open_peer(struct neighbour_peer *peer, struct neighbour_links *links, int partition) {
    const struct neighbour_replica *replica = &links->replica;
    size_t slots = (size_t)replica->places * (size_t)replica->exchanges * 2;
    *peer = (struct neighbour_peer){
        .links = links,
        .partition = partition,
        .worker = replica->workers[partition],
        .outgoing = mem_zeroed(slots, sizeof *peer->outgoing),
        .incoming = mem_zeroed(slots, sizeof *peer->incoming),
        .told = mem_zeroed((size_t)replica->flights, sizeof *peer->told),
    };
    pthread_mutex_init(&peer->lock, NULL);
    STAILQ_INIT(&peer->queue);
    if (!peer->outgoing || !peer->incoming || !peer->told)
        return false;
    for (size_t i = 0; i < slots; i++)
        peer->outgoing[i].peer = peer;
    for (int i = 0; i < replica->flights; i++)
        peer->told[i].peer = peer;
    return true;
}

static bool open_peers(struct neighbour_links *links) {
    const struct neighbour_replica *replica = &links->replica;
    links->peers = mem_zeroed((size_t)replica->partitions, sizeof *links->peers);
    links->ends = mem_zeroed((size_t)replica->places, sizeof *links->ends);
    links->heard = mem_zeroed((size_t)replica->flights, sizeof *links->heard);
    bool good = links->peers && links->ends && links->heard;
    for (int p = 0; good && p < replica->partitions; p++)
        if (p != replica->partition)
            good = open_peer(&links->peers[p], links, p);
    for (int i = 0; good && i < replica->places; i++)
        neighbour_wire_open(&links->ends[i], links, i);
    return good;
}

static const struct net_wire *wire_of(void *self, int place) {
    return &((struct neighbour_links *)self)->ends[place].wire;
}

int neighbour_links_form(struct neighbour_links *links, const struct neighbour_replica *replica,
                         struct error *err) {
    links->replica = *replica;
    snprintf(links->name, sizeof links->name, "%.*s", (int)replica->hello.name.length,
             replica->hello.name.at);
    links->replica.hello.name = proto_text(links->name);
    if (!open_peers(links))
        return error_nomem(err);
    links->replica.workers = NULL; // the caller's
    links->neighbours = (struct neighbours){
        .self = links,
        .partition = replica->partition,
        .gate = &links->gate,
        .wire = wire_of,
        .lost = is_lost,
    };
    neighbour_flights_open(links);
    atomic_store(&links->formed, true);
    links->dialling = !pthread_create(&links->dialler, NULL, neighbour_dial_thread, links);
    return links->dialling ? STATUS_OK
                           : error_set(err, STATUS_IO,
                                       "cannot start a thread to reach the other "
                                       "partitions of the model");
}

const struct neighbours *neighbour_links_neighbours(struct neighbour_links *links) {
    return &links->neighbours;
}

// The first partition that is not linked, under the lock.
static const struct neighbour_peer *missing_peer(const struct neighbour_links *links) {
    for (int p = 0; p < links->replica.partitions; p++)
        if (links->peers[p].links && !links->peers[p].link)
            return &links->peers[p];
    return NULL;
}

bool neighbour_links_whole(struct neighbour_links *links) {
    pthread_mutex_lock(&links->lock);
    bool whole = atomic_load(&links->formed) && !missing_peer(links);
    pthread_mutex_unlock(&links->lock);
    return whole;
}

void neighbour_links_waits_for(struct neighbour_links *links, char text[PROTO_ADDRESS_MAX]) {
    pthread_mutex_lock(&links->lock);
    const struct neighbour_peer *peer = atomic_load(&links->formed) ? missing_peer(links) : NULL;
    char whole[LINK_WHY + 512] = "";
    if (peer)
        snprintf(whole, sizeof whole, "partition %d of its model, %s at %s%s%s", peer->partition,
                 peer->worker.name, peer->worker.address, *peer->why ? ": " : "", peer->why);
    snprintf(text, PROTO_ADDRESS_MAX, "%.*s", PROTO_ADDRESS_MAX - 1, whole);
    pthread_mutex_unlock(&links->lock);
}

void neighbour_links_traffic(struct neighbour_links *links, uint64_t *received, uint64_t *sent) {
    for (int p = 0; atomic_load(&links->formed) && p < links->replica.partitions; p++) {
        struct neighbour_peer *peer = &links->peers[p];
        struct link *link = peer->links ? neighbour_link(peer) : NULL;
        uint64_t in = 0, out = 0;
        if (!link)
            continue;
        link_traffic(link, &in, &out);
        link_drop(link);
        *received += in;
        *sent += out;
    }
}

// --- beginning and end ----------------------------------------------------------------------

void neighbour_request(struct neighbour_peer *peer, struct link *link, uint64_t request,
                       uint16_t type, const union proto_message *message, struct buffer *payload) {
    uint64_t session;
    if (!proto_session(type, message, &session) || session != peer->worker.session)
        link_refuse(link, request, PROTO_REFUSAL_WRONG_SESSION, 0, "");
    else if (type == PROTO_TYPE_EXCHANGE)
        neighbour_hear_piece(peer, request, &message->exchange, payload);
    else if (type == PROTO_TYPE_FLY)
        neighbour_hear_flight(peer, request, &message->fly, payload);
    else
        link_refuse(link, request, PROTO_REFUSAL_WRONG_ROLE, 0, "");
}

static void hear_request(void *context, struct link *link, uint64_t request, uint16_t type,
                         const union proto_message *message, struct buffer *payload) {
    (void)context;
    neighbour_request(link_user(link), link, request, type, message, payload);
}

int neighbour_links_open(struct neighbour_links **out,
                         const struct neighbour_links_options *options, struct error *err) {
    struct neighbour_links *links = mem_zeroed(1, sizeof *links);
    if (!links)
        return error_nomem(err);
    links->options = *options;
    links->pool.limit = SIZE_MAX; // each place takes one piece
    pthread_mutex_init(&links->lock, NULL);
    const struct link_options link = {
        .handlers = {links, neighbour_hello, hear_request, neighbour_closed},
        .pool = &links->pool,
        .keys = options->keys,
        .insecure = options->insecure,
    };
    int status = listener_open(&links->listener, options->listen, &link, NULL, err);
    if (status)
        neighbour_links_close(links);
    else
        *out = links;
    return status;
}

const char *neighbour_links_address(const struct neighbour_links *links) {
    return listener_address(links->listener);
}

static void close_peer(struct neighbour_peer *peer, size_t slots) {
    if (!peer->links)
        return;
    for (size_t i = 0; peer->incoming && i < slots; i++)
        buffer_drop(atomic_load(&peer->incoming[i].payload));
    pthread_mutex_destroy(&peer->lock);
    free(peer->outgoing);
    free(peer->incoming);
    free(peer->told);
}

void neighbour_links_close(struct neighbour_links *links) {
    if (!links)
        return;
    const struct neighbour_replica *replica = &links->replica;
    atomic_store(&links->closing, true);
    gate_open(&links->dial);
    if (links->dialling)
        pthread_join(links->dialler, NULL);
    for (int p = 0; links->peers && p < replica->partitions; p++)
        if (links->peers[p].link)
            link_close(links->peers[p].link);
    if (links->listener)
        listener_close(links->listener);
    for (int p = 0; links->peers && p < replica->partitions; p++)
        close_peer(&links->peers[p], (size_t)replica->places * (size_t)replica->exchanges * 2);
    for (int i = 0; links->heard && i < replica->flights; i++)
        buffer_drop(links->heard[i].payload);
    free(links->peers), free(links->ends), free(links->heard);
    pool_free(&links->pool);
    pthread_mutex_destroy(&links->lock);
    free(links);
}
