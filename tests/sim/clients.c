// Workers push +1 to counters, under a number that stays the same until they have an answer.
// Readers pull, and remember the versions that they have seen: these never go back, but where a
// member has only what its store had.
#include "sim.h"

enum { AGAIN = 40, IN_FLIGHT = 3 };

static void ask_places(struct world *w, uint32_t i) {
    const struct packet packet = {.kind = PACKET_ASK,
                                  .from = (uint8_t)(FIRST_CLIENT + i),
                                  .to = (uint8_t)drawn(w, w->controller_count)};
    packet_send(w, &packet);
}

// To the shard's primary, as far as the client knows. Returns how often it will arrive.
static int send_request(struct world *w, uint32_t i, enum packet_kind kind,
                        struct request request) {
    struct client *c = &w->clients[i];
    const struct proto_place *place =
        &c->state.places[proto_bucket_of(request.shard, w->bucket_count)];
    const struct agreed_server *server = state_server(&c->state, place->primary);
    if (!c->state.assigned || !server) {
        c->wants_places = true;
        return 0;
    }
    request.client = i;
    request.epoch = place->epoch;
    struct packet packet = {.kind = kind,
                            .from = (uint8_t)(FIRST_CLIENT + i),
                            .to = (uint8_t)(FIRST_SERVER + server->slot)};
    packet.request = request;
    return packet_send(w, &packet);
}

// --- workers ------------------------------------------------------------------------------

static void send_push(struct world *w, uint32_t i, uint32_t sequence) {
    struct push *push = &w->clients[i].pushes[sequence];
    const struct request request = {.sequence = sequence, .shard = push->shard, .mask = push->mask};
    push->sent = w->now;
    push->copies += (uint32_t)send_request(w, i, PACKET_PUSH, request);
}

static void worker_tick(struct world *w, uint32_t i) {
    struct client *c = &w->clients[i];
    uint32_t in_flight = 0;
    for (uint32_t k = 0; k < c->next; k++) {
        if (c->pushes[k].state != PUSH_SENT)
            continue;
        in_flight++;
        if (w->now - c->pushes[k].sent < AGAIN)
            continue;
        c->wants_places = true; // perhaps another server has it by now
        send_push(w, i, k);
    }
    if (in_flight >= IN_FLIGHT || c->next >= c->wanted || !c->state.assigned)
        return;
    c->pushes[c->next] = (struct push){
        .state = PUSH_SENT, .shard = drawn(w, w->shard_count), .mask = drawn(w, 1 << COUNTERS)};
    send_push(w, i, c->next++);
}

// One that was refused, and of which there is no other copy on the way, may be dropped: it must
// never be applied.
static void receive_pushed(struct world *w, uint32_t i, const struct request *answer) {
    struct client *c = &w->clients[i];
    struct push *push = &c->pushes[answer->sequence];
    if (push->state != PUSH_SENT)
        return;
    if (!answer->refusal) {
        push->state = PUSH_DONE;
    } else {
        c->wants_places = true;
        if (push->copies == 1 && happens(w, 300))
            push->state = PUSH_DROPPED;
    }
}

// --- readers ------------------------------------------------------------------------------

static void reader_tick(struct world *w, uint32_t i) {
    struct client *c = &w->clients[i];
    if (!c->state.assigned || (c->pulling && w->now - c->asked < AGAIN))
        return;
    c->wants_places |= c->pulling;
    c->pull = (struct request){.sequence = ++c->pulls, .shard = drawn(w, w->shard_count)};
    c->pulling = true;
    c->asked = w->now;
    send_request(w, i, PACKET_PULL, c->pull);
}

static void receive_pulled(struct world *w, uint32_t i, const struct request *answer) {
    struct client *c = &w->clients[i];
    if (!c->pulling || answer->sequence != c->pull.sequence)
        return;
    c->pulling = false;
    c->wants_places |= answer->refusal != 0;
    if (answer->refusal)
        return;
    uint64_t returned = w->returned[proto_bucket_of(answer->shard, w->bucket_count)];
    if (answer->epoch < returned)
        return;
    if (c->when[answer->shard] >= returned && answer->version < c->seen[answer->shard])
        fault(w, "reader %u sees version %llu of shard %u after %llu", i,
              (unsigned long long)answer->version, answer->shard,
              (unsigned long long)c->seen[answer->shard]);
    c->seen[answer->shard] = answer->version;
    c->when[answer->shard] = answer->epoch;
}

// --- both ---------------------------------------------------------------------------------

static void tick(struct world *w, uint32_t i) {
    struct client *c = &w->clients[i];
    if (c->wants_places || !c->state.assigned)
        ask_places(w, i);
    c->wants_places = false;
    if (i < WORKERS)
        worker_tick(w, i);
    else
        reader_tick(w, i);
}

void client_receive(struct world *w, uint32_t i, const struct packet *packet) {
    struct client *c = &w->clients[i];
    if (packet->kind == PACKET_TIMER)
        packet_post(w, packet, i < WORKERS ? TICK : 2 * TICK);
    if (!w->nodes[FIRST_CLIENT + i].up)
        return;
    if (packet->kind == PACKET_TIMER)
        tick(w, i);
    else if (packet->kind == PACKET_PLACES && packet->places.state.epoch > c->state.epoch)
        c->state = packet->places.state;
    else if (packet->kind == PACKET_ANSWER && i < WORKERS)
        receive_pushed(w, i, &packet->request);
    else if (packet->kind == PACKET_ANSWER)
        receive_pulled(w, i, &packet->request);
}
