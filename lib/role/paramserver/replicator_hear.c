#include "role/paramserver/replicator_internal.h"

enum {
    AGAIN = 100,                 // milliseconds after which one that was refused may ask again
    EARLY_MOST = LINK_WINDOW / 4 // of a new primary: its pulses must find room, too
};

// --- whose they are ---------------------------------------------------------------------

// The member that the message says it is from; PROTO_NOBODY: it is no such message.
static uint32_t sender_of(uint16_t type, const union proto_message *message) {
    switch (type) {
    case PROTO_TYPE_PREPARE:
        return message->prepare.from;
    case PROTO_TYPE_COMMIT:
        return message->commit.from;
    case PROTO_TYPE_PULSE:
        return message->pulse.from;
    default:
        return PROTO_NOBODY;
    }
}

// The session of a member; 0: it is not known.
static uint64_t session_of(struct replicator *r, uint32_t number) {
    uint64_t session = 0;
    pthread_mutex_lock(&r->lock);
    const struct proto_list list =
        r->members ? r->members->message.status.members : (struct proto_list){0};
    const struct proto_member *members = list.at;
    for (uint32_t i = 0; i < list.count && !session; i++)
        session = members[i].member == number ? members[i].session : 0;
    pthread_mutex_unlock(&r->lock);
    return session;
}

void replicator_hear(struct replicator *r, struct link *link, uint64_t session, uint64_t request,
                     uint16_t type, const union proto_message *message, struct buffer *payload) {
    uint32_t from = sender_of(type, message);
    uint64_t known = session_of(r, from);
    if (from == PROTO_NOBODY) {
        link_refuse(link, request, PROTO_REFUSAL_WRONG_ROLE, type, "ask the controller of the run");
    } else if (!known) {
        member_look(r->options.member);
        link_refuse(link, request, PROTO_REFUSAL_BUSY, AGAIN,
                    "word of this member has not come here yet");
    } else if (known != session) {
        link_refuse(link, request, PROTO_REFUSAL_WRONG_SESSION, session, "");
    } else {
        link_know(link);
        request_queue_add(&r->inbox, link, request, type, message, payload);
    }
}

// --- messages ---------------------------------------------------------------------------

static struct replica_message read_prepare(const struct replicator *r,
                                           const struct proto_prepare *m) {
    return (struct replica_message){
        .kind = REPLICA_PREPARE,
        .from = m->from,
        .to = r->options.identity.member,
        .shard = m->shard,
        .epoch = m->epoch,
        .base = {m->base_epoch, m->base_version},
        .stamp = {m->stamp_epoch, m->stamp_version},
        .blocks = m->blocks,
        .whole = m->whole,
    };
}

// A payload comes with each message that brings other values than those of its base.
static void hear_prepare(struct replicator *r, const struct proto_prepare *m,
                         struct buffer *payload) {
    struct replica_message message = read_prepare(r, m);
    bool changes =
        m->whole || m->base_epoch != m->stamp_epoch || m->base_version != m->stamp_version;
    if (changes)
        message.load = load_take(&r->place, m, payload);
    if (changes != (message.load != NULL))
        return;
    replica_receive(r->replica, &message, replicator_now());
    if (message.load)
        load_release(message.load);
}

static void hear_commit(struct replicator *r, const struct proto_commit *m) {
    const struct replica_message message = {
        .kind = REPLICA_COMMIT,
        .from = m->from,
        .to = r->options.identity.member,
        .shard = m->shard,
        .epoch = m->epoch,
        .stamp = {m->stamp_epoch, m->stamp_version},
    };
    replica_receive(r->replica, &message, replicator_now());
}

static void hear_pulse(struct replicator *r, const struct proto_pulse *m) {
    const struct replica_message message = {
        .kind = REPLICA_PULSE, .from = m->from, .to = r->options.identity.member};
    replica_receive(r->replica, &message, replicator_now());
}

static void hear(struct replicator *r, const struct queued_request *request) {
    const union proto_message *message = &request->message->message;
    if (request->type == PROTO_TYPE_PREPARE)
        hear_prepare(r, &message->prepare, request->payload);
    else if (request->type == PROTO_TYPE_COMMIT)
        hear_commit(r, &message->commit);
    else
        hear_pulse(r, &message->pulse);
}

static bool waits_for_store(const struct replicator *r, const struct queued_request *request) {
    return r->attended && request->type == PROTO_TYPE_PREPARE &&
           request->message->message.prepare.shard < r->shards &&
           r->attended[request->message->message.prepare.shard].keepings > 0;
}

static void put_off(struct queued_request *request) {
    link_refuse(request->link, request->request, PROTO_REFUSAL_BUSY, AGAIN, "");
    queued_request_free(request);
}

// One request of a shard waits: the newest.
static void wait_for_store(struct replicator *r, struct queued_request *request) {
    struct attended *shard = &r->attended[request->message->message.prepare.shard];
    if (shard->waiting)
        put_off(shard->waiting);
    shard->waiting = request;
}

// A new primary has heard of its role first. To be sent all of it again would take longer than to
// hear of it here.
static void wait_for_places(struct replicator *r, struct queued_request *request) {
    struct queued_request **last = &r->early;
    while (*last)
        last = &(*last)->next;
    request->next = NULL;
    *last = request;
    r->early_count++;
}

void replicator_settle(struct replicator *r, struct queued_request *request) {
    bool answered = !r->hearing, early = r->outdated && r->early_count < EARLY_MOST;
    r->hearing = NULL;
    r->outdated = false;
    if (answered)
        queued_request_free(request);
    else if (early)
        wait_for_places(r, request);
    else if (waits_for_store(r, request))
        wait_for_store(r, request);
    else
        put_off(request);
}

static void take_request(struct replicator *r, struct queued_request *request) {
    r->hearing = request;
    if (r->replica)
        hear(r, request);
    replicator_settle(r, request);
}

void replicator_take_requests(struct replicator *r) {
    struct queued_request *request;
    while ((request = request_queue_take(&r->inbox)))
        take_request(r, request);
}

static struct queued_request *take_early(struct replicator *r) {
    struct queued_request *list = r->early;
    r->early = NULL;
    r->early_count = 0;
    return list;
}

void replicator_take_early(struct replicator *r) {
    for (struct queued_request *request = take_early(r), *next; request; request = next) {
        next = request->next;
        take_request(r, request);
    }
}

void replicator_forget_early(struct replicator *r) {
    for (struct queued_request *request = take_early(r), *next; request; request = next) {
        next = request->next;
        queued_request_free(request);
    }
}

// --- answers ----------------------------------------------------------------------------

static void answer_prepared(const struct queued_request *to, const struct replica_message *m) {
    const struct proto_prepared prepared = {
        .from = m->from,
        .shard = m->shard,
        .epoch = m->epoch,
        .asked_epoch = m->asked.epoch,
        .asked_version = m->asked.version,
        .stamp_epoch = m->stamp.epoch,
        .stamp_version = m->stamp.version,
        .committed_epoch = m->committed.epoch,
        .committed_version = m->committed.version,
    };
    link_answer(to->link, to->request, PROTO_TYPE_PREPARED, &prepared, NULL, NULL);
}

void replicator_answer(struct replicator *r, const struct replica_message *m) {
    const struct queued_request *to = r->hearing;
    bool pulse = to && to->type == PROTO_TYPE_PULSE;
    if (!to || pulse != (m->kind == REPLICA_ALIVE))
        return;
    if (m->kind == REPLICA_PREPARED)
        answer_prepared(to, m);
    else if (m->kind == REPLICA_STALE)
        link_refuse(to->link, to->request, PROTO_REFUSAL_STALE_ROUTE, m->epoch, "");
    else
        link_answer(to->link, to->request, PROTO_TYPE_DONE, NULL, NULL, NULL);
    r->hearing = NULL;
}
