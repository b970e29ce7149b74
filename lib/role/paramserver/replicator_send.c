#include <stdlib.h>

#include "core/mem.h"
#include "role/paramserver/replicator_internal.h"

// With ack = durable loads wait at other servers for their disks. So many of them are on their way
// to one that other messages do, too.
enum { LOADS_MOST = LINK_WINDOW / 2, LOAD_LEAST = PEERS_BYTES / LOADS_MOST };

struct delivery {
    struct peers_request ask;
    struct replicator *replicator;
    struct delivery *next;
    struct delivery *other;    // load of the shard on its way
    struct replica_load *load; // NULL: none
    struct replica_message sent;
    struct replica_message answer;
    bool answered;
    struct link_part parts[LOAD_PARTS];
};

// --- answers ----------------------------------------------------------------------------

static bool read_prepared(struct delivery *delivery, const struct proto_prepared *prepared) {
    const struct replica_message *sent = &delivery->sent;
    delivery->answer = (struct replica_message){
        .kind = REPLICA_PREPARED,
        .from = sent->to,
        .to = sent->from,
        .shard = prepared->shard,
        .epoch = prepared->epoch,
        .asked = {prepared->asked_epoch, prepared->asked_version},
        .stamp = {prepared->stamp_epoch, prepared->stamp_version},
        .committed = {prepared->committed_epoch, prepared->committed_version},
    };
    return prepared->from == sent->to && prepared->shard == sent->shard;
}

static bool read_refusal(struct delivery *delivery, const struct proto_refused *refused) {
    const struct replica_message *sent = &delivery->sent;
    delivery->answer = (struct replica_message){
        .kind = REPLICA_STALE,
        .from = sent->to,
        .to = sent->from,
        .shard = sent->shard,
        .epoch = refused->detail,
    };
    return refused->code == PROTO_REFUSAL_STALE_ROUTE;
}

static bool read_answer(struct delivery *delivery) {
    const struct link_request *request = &delivery->ask.link;
    const struct replica_message *sent = &delivery->sent;
    if (request->status)
        return false;
    if (request->answer_type == PROTO_TYPE_PREPARED)
        return read_prepared(delivery, &request->answer->prepared);
    if (request->answer_type == PROTO_TYPE_REFUSED)
        return read_refusal(delivery, &request->answer->refused);
    delivery->answer =
        (struct replica_message){.kind = REPLICA_ALIVE, .from = sent->to, .to = sent->from};
    return true;
}

// By a thread of the network.
static void end_delivery(struct link_request *request) {
    struct delivery *delivery = request->context;
    struct replicator *r = delivery->replicator;
    delivery->answered = read_answer(delivery);
    delivery->next = NULL;
    peers_done(&delivery->ask);
    pthread_mutex_lock(&r->lock);
    *r->last = delivery;
    r->last = &delivery->next;
    pthread_mutex_unlock(&r->lock);
    gate_open(&r->work);
}

static void free_delivery(struct delivery *delivery) {
    if (delivery->load)
        load_release(delivery->load);
    free(delivery);
}

// --- loads on their way -----------------------------------------------------------------

static bool notes_deliveries(const struct replicator *r) {
    return r->attended && !r->options.delayed;
}

static void note_delivery(struct replicator *r, struct delivery *delivery) {
    struct attended *shard = &r->attended[delivery->sent.shard];
    delivery->other = shard->deliveries;
    shard->deliveries = delivery;
}

static void forget_delivery(struct replicator *r, const struct delivery *delivery) {
    struct delivery **at = &r->attended[delivery->sent.shard].deliveries;
    while (*at && *at != delivery)
        at = &(*at)->other;
    if (*at)
        *at = delivery->other;
}

static bool is_same(const struct replica_message *a, const struct replica_message *b) {
    return a->to == b->to && a->epoch == b->epoch && a->whole == b->whole &&
           a->stamp.epoch == b->stamp.epoch && a->stamp.version == b->stamp.version;
}

// It waits there for the disk, or is still to come: it would be of no use again.
static bool is_on_its_way(const struct replicator *r, const struct replica_message *m) {
    const struct delivery *delivery = notes_deliveries(r) ? r->attended[m->shard].deliveries : NULL;
    while (delivery && !is_same(&delivery->sent, m))
        delivery = delivery->other;
    return delivery != NULL;
}

static struct delivery *take_answered(struct replicator *r) {
    pthread_mutex_lock(&r->lock);
    struct delivery *list = r->first;
    r->first = NULL;
    r->last = &r->first;
    pthread_mutex_unlock(&r->lock);
    return list;
}

void replicator_take_answers(struct replicator *r) {
    for (struct delivery *delivery = take_answered(r), *next; delivery; delivery = next) {
        next = delivery->next;
        if (notes_deliveries(r))
            forget_delivery(r, delivery);
        if (delivery->answered && r->replica)
            replica_receive(r->replica, &delivery->answer, replicator_now());
        free_delivery(delivery);
    }
}

// --- messages ---------------------------------------------------------------------------

// Who finds no memory has lost the message.
static struct delivery *make_delivery(struct replicator *r, const struct replica_message *message) {
    struct delivery *delivery = mem_zeroed(1, sizeof *delivery);
    if (!delivery)
        return NULL;
    delivery->replicator = r;
    delivery->sent = *message;
    delivery->ask.member = message->to;
    delivery->ask.link.done = end_delivery;
    delivery->ask.link.context = delivery;
    return delivery;
}

static void ask(struct replicator *r, struct delivery *delivery, uint16_t type,
                const void *message) {
    bool noted = notes_deliveries(r) && delivery->load;
    delivery->ask.link.type = type;
    delivery->ask.link.message = message;
    if (noted)
        note_delivery(r, delivery);
    if (!peers_ask(r->peers, &delivery->ask, NULL))
        return;
    if (noted)
        forget_delivery(r, delivery);
    free_delivery(delivery);
}

static void add_load(struct delivery *delivery, struct replica_load *load, uint64_t blocks) {
    struct link_request *request = &delivery->ask.link;
    load_hold(load);
    delivery->load = load;
    request->parts = delivery->parts;
    request->part_count = load_parts(load, blocks, delivery->parts);
    for (uint32_t i = 0; i < request->part_count; i++)
        delivery->ask.bytes += delivery->parts[i].size;
    if (notes_deliveries(delivery->replicator) && delivery->ask.bytes < LOAD_LEAST)
        delivery->ask.bytes = LOAD_LEAST;
}

static void send_prepare(struct replicator *r, const struct replica_message *m) {
    if (is_on_its_way(r, m))
        return;
    struct delivery *delivery = make_delivery(r, m);
    struct proto_applied *pushes = m->load ? load_pushes(m->load) : NULL;
    if (!delivery || (m->load && !pushes)) {
        free(delivery), free(pushes);
        return;
    }
    const struct proto_prepare message = {
        .from = m->from,
        .shard = m->shard,
        .epoch = m->epoch,
        .base_epoch = m->base.epoch,
        .base_version = m->base.version,
        .stamp_epoch = m->stamp.epoch,
        .stamp_version = m->stamp.version,
        .whole = m->whole,
        .blocks = m->load ? m->blocks : 0,
        .applied = {pushes, m->load ? m->load->push_count : 0},
    };
    if (m->load)
        add_load(delivery, m->load, m->blocks);
    ask(r, delivery, PROTO_TYPE_PREPARE, &message);
    free(pushes);
}

static void send_commit(struct replicator *r, const struct replica_message *m) {
    struct delivery *delivery = make_delivery(r, m);
    const struct proto_commit message = {
        .from = m->from,
        .shard = m->shard,
        .epoch = m->epoch,
        .stamp_epoch = m->stamp.epoch,
        .stamp_version = m->stamp.version,
    };
    if (delivery)
        ask(r, delivery, PROTO_TYPE_COMMIT, &message);
}

static void send_pulse(struct replicator *r, const struct replica_message *m) {
    struct delivery *delivery = make_delivery(r, m);
    const struct proto_pulse message = {.from = m->from};
    if (delivery)
        ask(r, delivery, PROTO_TYPE_PULSE, &message);
}

void replicator_send(struct replicator *r, const struct replica_message *message) {
    switch (message->kind) {
    case REPLICA_PREPARE:
        send_prepare(r, message);
        break;
    case REPLICA_COMMIT:
        send_commit(r, message);
        break;
    case REPLICA_PULSE:
        send_pulse(r, message);
        break;
    default:
        replicator_answer(r, message);
    }
}
