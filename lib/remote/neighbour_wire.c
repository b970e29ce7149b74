// Pieces of passes. Each has a place at its receiver, for one piece at a time: its sender waits for
// the answer, which says that it was read, before it sends the next one.
#include <stdio.h>

#include "remote/neighbour_internal.h"

static size_t slot_of(const struct neighbour_links *links, int place, int exchange, bool back) {
    return ((size_t)place * (size_t)links->replica.exchanges + (size_t)exchange) * 2 + back;
}

static struct neighbour_peer *peer_at(const struct neighbour_end *end, int partition) {
    return &end->links->peers[partition];
}

static struct outgoing *outgoing_at(const struct neighbour_end *end, int exchange,
                                    enum net_pass pass, int to) {
    return &peer_at(end, to)
                ->outgoing[slot_of(end->links, end->place, exchange, pass == NET_BACKWARD)];
}

static struct incoming *incoming_at(const struct neighbour_end *end, int exchange,
                                    enum net_pass pass, int from) {
    return &peer_at(end, from)
                ->incoming[slot_of(end->links, end->place, exchange, pass == NET_BACKWARD)];
}

// --- out ------------------------------------------------------------------------------------

// Half of what a link takes, so that mini-batches have room beside pieces.
enum { IN_FLIGHT_MOST = LINK_WINDOW / 2 };

static void ask(struct outgoing *piece) {
    struct neighbour_peer *peer = piece->peer;
    struct link *link = neighbour_link(peer);
    struct error err = {0};
    int status = link ? link_ask(link, &piece->ask, &err)
                      : error_set(&err, STATUS_UNAVAILABLE, "there is no connection");
    if (link)
        link_drop(link);
    if (status)
        neighbour_lose(peer->links, peer, err.text);
}

// The next piece that waits, if one more may be in flight; NULL: none.
static struct outgoing *next_piece(struct neighbour_peer *peer) {
    pthread_mutex_lock(&peer->lock);
    struct outgoing *piece = peer->in_flight < IN_FLIGHT_MOST ? STAILQ_FIRST(&peer->queue) : NULL;
    if (piece) {
        STAILQ_REMOVE_HEAD(&peer->queue, queued);
        peer->in_flight++;
    }
    pthread_mutex_unlock(&peer->lock);
    return piece;
}

static void pump(struct neighbour_peer *peer) {
    struct outgoing *piece;
    while ((piece = next_piece(peer)))
        ask(piece);
}

static void piece_read(struct link_request *request) {
    struct outgoing *piece = request->context;
    struct neighbour_peer *peer = piece->peer;
    bool read = !request->status && request->answer_type == PROTO_TYPE_DONE;
    if (!read)
        neighbour_lose(peer->links, peer,
                       request->status ? request->why : "it refused a piece of a pass");
    pthread_mutex_lock(&peer->lock);
    peer->in_flight--;
    pthread_mutex_unlock(&peer->lock);
    atomic_store(&piece->busy, false);
    gate_open(&peer->links->gate);
    if (read)
        pump(peer);
}

static bool has_gone(void *self, int exchange, enum net_pass pass, int to) {
    return !atomic_load(&outgoing_at(self, exchange, pass, to)->busy);
}

static void send_piece(void *self, int exchange, enum net_pass pass, int to, const float *floats,
                       size_t count) {
    const struct neighbour_end *end = self;
    struct neighbour_peer *peer = peer_at(end, to);
    struct outgoing *piece = outgoing_at(end, exchange, pass, to);
    if (count * sizeof *floats > PROTO_PAYLOAD_MAX) {
        neighbour_lose(end->links, peer,
                       "a piece of a pass is larger than a message may be: take a smaller batch");
        return;
    }
    atomic_store(&piece->busy, true);
    piece->part = (struct link_part){floats, count * sizeof *floats};
    piece->message = (struct proto_exchange){
        .session = end->links->replica.hello.session,
        .place = (uint32_t)end->place,
        .exchange = (uint32_t)exchange,
        .back = pass == NET_BACKWARD,
    };
    piece->ask = (struct link_request){
        .type = PROTO_TYPE_EXCHANGE,
        .message = &piece->message,
        .parts = &piece->part,
        .part_count = 1,
        .done = piece_read,
        .context = piece,
    };
    pthread_mutex_lock(&peer->lock);
    STAILQ_INSERT_TAIL(&peer->queue, piece, queued);
    pthread_mutex_unlock(&peer->lock);
    pump(peer);
}

// --- in -------------------------------------------------------------------------------------

void neighbour_hear_piece(struct neighbour_peer *peer, uint64_t request,
                          const struct proto_exchange *message, struct buffer *payload) {
    struct neighbour_links *links = peer->links;
    const struct neighbour_replica *replica = &links->replica;
    if (message->place >= (uint32_t)replica->places ||
        message->exchange >= (uint32_t)replica->exchanges || !payload) {
        neighbour_lose(links, peer, "it sent a piece of no pass");
        return;
    }
    struct incoming *piece =
        &peer->incoming[slot_of(links, (int)message->place, (int)message->exchange, message->back)];
    if (atomic_load(&piece->payload)) {
        neighbour_lose(links, peer, "it sent a piece before the one before was read");
        return;
    }
    buffer_hold(payload);
    piece->request = request;
    atomic_store(&piece->payload, payload);
    gate_open(&links->gate);
}

static const float *receive_piece(void *self, int exchange, enum net_pass pass, int from,
                                  size_t count) {
    const struct neighbour_end *end = self;
    struct incoming *piece = incoming_at(end, exchange, pass, from);
    const struct buffer *payload = atomic_load(&piece->payload);
    if (!payload)
        return NULL;
    if (payload->size == count * sizeof(float))
        return payload->data;
    neighbour_lose(end->links, peer_at(end, from), "it sent a piece of another size");
    return NULL;
}

static void mark_read(void *self, int exchange, enum net_pass pass, int from) {
    const struct neighbour_end *end = self;
    struct incoming *piece = incoming_at(end, exchange, pass, from);
    struct buffer *payload = atomic_load(&piece->payload);
    uint64_t request = piece->request;
    atomic_store(&piece->payload, NULL);
    buffer_drop(payload);
    neighbour_answer(peer_at(end, from), request, PROTO_TYPE_DONE, NULL);
}

void neighbour_wire_open(struct neighbour_end *end, struct neighbour_links *links, int place) {
    *end = (struct neighbour_end){
        .links = links,
        .wire = {has_gone, send_piece, receive_piece, mark_read, end},
        .place = place,
    };
}
