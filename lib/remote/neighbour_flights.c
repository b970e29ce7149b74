// Mini-batches that all partitions pass: the first one tells the others of them, without their
// inputs, and is answered when they have.
#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "remote/neighbour_internal.h"

#define RATE_MOST 1e9 // as settings of a run may have it

static const char nonsense[] = "it told of a mini-batch that cannot be";

// --- of the first ---------------------------------------------------------------------------

static void hear_landed(struct link_request *request) {
    struct told *told = request->context;
    struct neighbour_peer *peer = told->peer;
    bool landed = !request->status && request->answer_type == PROTO_TYPE_LANDED &&
                  request->answer->landed.number == told->message.number;
    if (landed) {
        told->loss = request->answer->landed.loss;
        told->refused = request->answer->landed.refused || !isfinite(told->loss);
        atomic_store(&told->landed, true);
    } else {
        neighbour_lose(peer->links, peer,
                       request->status ? request->why : "it refused a mini-batch");
    }
    gate_open(&peer->links->gate);
}

static struct told *told_at(struct neighbour_peer *peer, uint64_t number) {
    return &peer->told[number % (uint64_t)peer->links->replica.flights];
}

static void add_part(struct told *told, uint32_t *count, const void *at, size_t size) {
    if (at && size > 0)
        told->parts[(*count)++] = (struct link_part){at, size};
}

static void tell_peer(struct neighbour_peer *peer, uint64_t number, const struct batch *batch,
                      float rate) {
    struct neighbour_links *links = peer->links;
    struct told *told = told_at(peer, number);
    struct link *link = neighbour_link(peer);
    struct error err = {0};
    size_t n = (size_t)batch->n, outputs = (size_t)links->replica.outputs;
    uint32_t parts = 0;
    bool targets = n > 0 && batch->target, mixed = n > 0 && batch->other;
    atomic_store(&told->landed, false);
    told->message = (struct proto_fly){
        .session = links->replica.hello.session,
        .number = number,
        .samples = (uint32_t)n,
        .targets = targets ? (uint32_t)outputs : 0,
        .mixed = mixed,
        .rate = (double)rate,
    };
    if (n > 0) {
        add_part(told, &parts, batch->draw, n * sizeof *batch->draw);
        add_part(told, &parts, batch->label, n * sizeof *batch->label);
    }
    if (targets)
        add_part(told, &parts, batch->target, n * outputs * sizeof *batch->target);
    if (mixed) {
        add_part(told, &parts, batch->other, n * sizeof *batch->other);
        add_part(told, &parts, batch->share, n * sizeof *batch->share);
    }
    told->ask = (struct link_request){
        .type = PROTO_TYPE_FLY,
        .message = &told->message,
        .parts = told->parts,
        .part_count = parts,
        .done = hear_landed,
        .context = told,
    };
    int status = link ? link_ask(link, &told->ask, &err)
                      : error_set(&err, STATUS_UNAVAILABLE, "there is no connection");
    if (link)
        link_drop(link);
    if (status)
        neighbour_lose(links, peer, err.text);
}

static void tell_flight(void *self, uint64_t number, const struct batch *batch, float rate) {
    struct neighbour_links *links = self;
    for (int p = 1; p < links->replica.partitions; p++)
        tell_peer(&links->peers[p], number, batch, rate);
}

static bool has_landed(void *self, uint64_t number, double *loss, bool *refused) {
    struct neighbour_links *links = self;
    for (int p = 1; p < links->replica.partitions; p++)
        if (!atomic_load(&told_at(&links->peers[p], number)->landed))
            return false;
    for (int p = 1; p < links->replica.partitions; p++) {
        const struct told *told = told_at(&links->peers[p], number);
        *loss += told->loss;
        *refused |= told->refused;
    }
    return true;
}

// --- of the others --------------------------------------------------------------------------

static bool labels_fit(const struct neighbour_replica *replica, const int32_t *labels, size_t n,
                       bool targets) {
    for (size_t i = 0; i < n; i++)
        if (labels[i] >= replica->outputs || labels[i] < (targets ? -1 : 0))
            return false;
    return true;
}

// Where the parts of a payload lie; false: they do not fit.
static bool lay_out(struct heard *heard, const struct neighbour_replica *replica) {
    const struct proto_fly *fly = &heard->message;
    size_t n = fly->samples, targets = fly->targets;
    size_t each = sizeof(uint64_t) + sizeof(int32_t) + targets * sizeof(float) +
                  (fly->mixed ? sizeof(int32_t) + sizeof(float) : 0);
    if (n == 0)
        return !heard->payload;
    if (!heard->payload || heard->payload->size != n * each)
        return false;
    uint64_t *draw = heard->payload->data;
    int32_t *label = (int32_t *)(draw + n);
    float *target = (float *)(label + n);
    int32_t *other = (int32_t *)(target + n * targets);
    heard->batch.draw = draw;
    heard->batch.label = label;
    heard->batch.target = targets ? target : NULL;
    heard->batch.other = fly->mixed ? other : NULL;
    heard->batch.share = fly->mixed ? (float *)(other + n) : NULL;
    return labels_fit(replica, label, n, targets > 0) &&
           (!fly->mixed || labels_fit(replica, other, n, targets > 0));
}

static bool makes_sense(const struct neighbour_replica *replica, const struct proto_fly *fly) {
    bool targets = fly->targets == (uint32_t)replica->outputs;
    return fly->samples <= (uint32_t)replica->batch && isfinite(fly->rate) && fly->rate >= 0 &&
           fly->rate <= RATE_MOST &&
           (fly->samples == 0 || targets || (fly->targets == 0 && replica->labels));
}

void neighbour_hear_flight(struct neighbour_peer *peer, uint64_t request,
                           const struct proto_fly *message, struct buffer *payload) {
    struct neighbour_links *links = peer->links;
    const struct neighbour_replica *replica = &links->replica;
    struct heard *heard = &links->heard[message->number % (uint64_t)replica->flights];
    if (peer->partition > 0 || atomic_load(&heard->there) || !makes_sense(replica, message)) {
        neighbour_lose(links, peer, nonsense);
        return;
    }
    heard->message = *message;
    heard->request = request;
    heard->payload = payload;
    heard->batch = (struct batch){.n = (int)message->samples, .number = message->number};
    if (!lay_out(heard, replica)) {
        heard->payload = NULL;
        neighbour_lose(links, peer, nonsense);
        return;
    }
    if (payload)
        buffer_hold(payload);
    atomic_store(&heard->there, true);
    gate_open(&links->gate);
}

static struct batch *hear_flight(void *self, uint64_t number, float *rate) {
    struct neighbour_links *links = self;
    struct heard *heard = &links->heard[number % (uint64_t)links->replica.flights];
    if (!atomic_load(&heard->there) || heard->message.number != number)
        return NULL;
    *rate = (float)heard->message.rate;
    return &heard->batch;
}

static void forget_flight(void *self, struct batch *batch) {
    struct neighbour_links *links = self;
    struct heard *heard = &links->heard[batch->number % (uint64_t)links->replica.flights];
    buffer_drop(heard->payload);
    heard->payload = NULL;
    atomic_store(&heard->there, false);
}

static void give_back(void *self, struct batch *batch, double loss, bool refused) {
    struct neighbour_links *links = self;
    const struct heard *heard = &links->heard[batch->number % (uint64_t)links->replica.flights];
    const struct proto_landed landed = {batch->number, loss, refused};
    uint64_t request = heard->request;
    forget_flight(links, batch);
    neighbour_answer(&links->peers[0], request, PROTO_TYPE_LANDED, &landed);
}

void neighbour_flights_open(struct neighbour_links *links) {
    links->neighbours.tell = tell_flight;
    links->neighbours.landed = has_landed;
    links->neighbours.hear = hear_flight;
    links->neighbours.give_back = give_back;
    links->neighbours.forget = forget_flight;
}
