// Parameter servers: small arrays of counters, kept equal by the real replica.
#include <string.h>

#include "../helper/replica_serving.h"
#include "core/error.h"
#include "sim.h"

static bool same_stamp(struct replica_stamp a, struct replica_stamp b) {
    return a.epoch == b.epoch && a.version == b.version;
}

// --- what the replica asks for ------------------------------------------------------------

static struct replica_load *host_read(void *self, uint32_t shard, uint64_t blocks,
                                      struct replica_read *read) {
    struct server *s = self;
    struct world *w = s->world;
    if (!w->healed && happens(w, 5))
        return NULL; // out of memory
    for (uint32_t tried = 0; tried < LOADS; tried++) {
        struct replica_load *load = &w->loads[w->next_load++ % LOADS];
        if (load->references > 0)
            continue;
        *load = (struct replica_load){1, blocks | s->untold[shard], s->values[shard]};
        read->version = s->values[shard].version;
        read->changed = s->untold[shard];
        s->untold[shard] = 0;
        return load;
    }
    return NULL;
}

// Only what was sent is taken over, and must give what the primary had.
static void overlay(struct values *values, uint64_t blocks, const struct replica_load *load) {
    for (uint32_t i = 0; i < COUNTERS; i++)
        if (blocks >> i & 1)
            values->counters[i] = load->values.counters[i];
    memcpy(values->applied, load->values.applied, sizeof values->applied);
    values->version = load->values.version;
}

static void host_install(void *self, uint32_t shard, struct replica_stamp stamp, uint64_t blocks,
                         bool whole, struct replica_load *load) {
    struct server *s = self;
    struct values *values = &s->values[shard];
    (void)whole;
    overlay(values, blocks, load);
    s->installed[shard] = stamp;
    trace(s->world, "server %u installs shard %u at (%llu, %llu)", s->slot, shard,
          (unsigned long long)stamp.epoch, (unsigned long long)stamp.version);
    check_stamp(s->world, shard, stamp, values);
}

static void host_keep(void *self, uint32_t shard, struct replica_stamp stamp,
                      struct replica_load *load) {
    struct server *s = self;
    struct state state = {stamp, s->values[shard]};
    if (server_is_primary(s, shard) || !load) {
        store_keep(s, shard, stamp, NULL);
        return;
    }
    overlay(&state.values, load->blocks, load);
    check_stamp(s->world, shard, stamp, &state.values);
    store_keep(s, shard, stamp, &state);
}

static void host_send(void *self, const struct replica_message *m) {
    struct server *s = self;
    struct world *w = s->world;
    const struct agreed_server *to = state_server(&s->state, m->to);
    if (m->load && m->blocks & ~m->load->blocks)
        fault(w, "server %u sends blocks that it has not read", s->slot);
    if (m->load)
        check_stamp(w, m->shard, m->stamp, &m->load->values);
    if (!to)
        return;
    struct packet packet = {.kind = PACKET_REPLICA,
                            .from = (uint8_t)(FIRST_SERVER + s->slot),
                            .to = (uint8_t)(FIRST_SERVER + to->slot)};
    packet.replica = *m;
    packet_send(w, &packet);
}

static void to_controllers(struct server *s, struct packet *packet) {
    packet->from = (uint8_t)(FIRST_SERVER + s->slot);
    for (uint32_t i = 0; i < s->world->controller_count; i++) {
        packet->to = (uint8_t)i;
        packet_send(s->world, packet);
    }
}

static void host_propose(void *self, const struct proto_proposal *proposal) {
    struct server *s = self;
    struct packet packet = {.kind = PACKET_PROPOSE};
    packet.proposal = *proposal;
    trace(s->world, "server %u proposes change %u of bucket %u in epoch %llu: member %u", s->slot,
          proposal->change, proposal->bucket, (unsigned long long)proposal->epoch,
          proposal->member);
    to_controllers(s, &packet);
}

static void host_outdated(void *self) {
    struct server *s = self;
    s->wants_places = true;
}

bool server_is_primary(const struct server *s, uint32_t shard) {
    uint32_t bucket = proto_bucket_of(shard, s->world->bucket_count);
    return s->replica && replica_bucket(s->replica, bucket).role == REPLICA_PRIMARY;
}

// --- answers ------------------------------------------------------------------------------

static void answer(struct server *s, struct request request, enum proto_refusal refusal,
                   uint64_t version) {
    struct packet packet = {.kind = PACKET_ANSWER,
                            .from = (uint8_t)(FIRST_SERVER + s->slot),
                            .to = (uint8_t)(FIRST_CLIENT + request.client)};
    packet.request = request;
    packet.request.refusal = refusal;
    packet.request.version = version;
    packet_send(s->world, &packet);
}

static void acknowledge(struct server *s, const struct request *request, uint64_t version) {
    trace(s->world, "server %u acknowledges push %u of worker %u", s->slot, request->sequence,
          request->client);
    if (!s->world->memory_ack)
        check_acknowledged(s->world, request);
    answer(s, *request, PROTO_REFUSAL_NONE, version);
}

static void host_replicated(void *self, uint32_t shard, uint64_t version) {
    struct server *s = self;
    check_replicated(s->world, s, shard);
    for (uint32_t i = 0; i < PENDING; i++) {
        struct waiting *waiting = &s->waiting[i];
        if (!waiting->any || waiting->request.shard != shard || waiting->version > version)
            continue;
        waiting->any = false;
        acknowledge(s, &waiting->request, version);
    }
}

static void host_closed(void *self, uint32_t shard) {
    struct server *s = self;
    for (uint32_t i = 0; i < PENDING; i++)
        if (s->waiting[i].request.shard == shard)
            s->waiting[i].any = false;
    s->installed[shard] = replica_stamp(s->replica, shard);
}

static struct waiting *free_waiting(struct server *s) {
    for (uint32_t i = 0; i < PENDING; i++)
        if (!s->waiting[i].any)
            return &s->waiting[i];
    return NULL;
}

// Each push is applied once: by what is known of it in the shard. It may change nothing but that.
static bool apply(struct values *values, const struct request *request) {
    uint64_t *word = &values->applied[request->client][request->sequence / 64];
    uint64_t bit = UINT64_C(1) << request->sequence % 64;
    if (*word & bit)
        return false;
    *word |= bit;
    values->version++;
    for (uint32_t i = 0; i < COUNTERS; i++)
        values->counters[i] += request->mask >> i & 1;
    return true;
}

// The threads that apply pushes are ahead of the one that the replica belongs to.
static void tell_applied(struct server *s, uint32_t shard) {
    uint64_t blocks = s->untold[shard];
    s->untold[shard] = 0;
    if (server_is_primary(s, shard))
        replica_applied(s->replica, shard, blocks, s->values[shard].version, s->world->now);
}

static void tell_all_applied(struct server *s) {
    for (uint32_t i = 0; i < s->world->shard_count; i++)
        tell_applied(s, i);
}

static enum proto_refusal examine(const struct server *s, const struct request *request,
                                  bool pull) {
    return replica_serving(s->replica, request->shard,
                           proto_bucket_of(request->shard, s->world->bucket_count), request->epoch,
                           pull, s->world->now < s->lease);
}

static enum proto_refusal examine_push(const struct server *s, const struct request *request) {
    if (s->world->stored && store_is_late(s))
        return PROTO_REFUSAL_BUSY;
    return examine(s, request, false);
}

static void receive_push(struct server *s, const struct request *request) {
    struct world *w = s->world;
    enum proto_refusal refusal = examine_push(s, request);
    struct waiting *waiting = free_waiting(s);
    if (refusal || !waiting) {
        answer(s, *request, refusal ? refusal : PROTO_REFUSAL_BUSY, 0);
        return;
    }
    struct values *values = &s->values[request->shard];
    bool new = apply(values, request);
    bool open = !examine(s, request, true);
    if (w->memory_ack && open)
        acknowledge(s, request, replica_version(s->replica, request->shard));
    else
        *waiting = (struct waiting){true, *request, values->version};
    s->untold[request->shard] |= new ? request->mask : 0;
    if (!happens(w, 200))
        tell_applied(s, request->shard);
    if (waiting->any && replica_has_replicated(s->replica, request->shard, waiting->version)) {
        waiting->any = false;
        acknowledge(s, request, replica_version(s->replica, request->shard));
    }
}

static void receive_pull(struct server *s, const struct request *request) {
    enum proto_refusal refusal = examine(s, request, true);
    if (!refusal)
        check_serving(s->world, s, request->shard);
    answer(s, *request, refusal, refusal ? 0 : replica_version(s->replica, request->shard));
}

// --- start and end ------------------------------------------------------------------------

// One whose disk fails does not start.
void server_start(struct world *w, uint32_t slot) {
    struct server *s = &w->servers[slot];
    uint16_t incarnation = (uint16_t)(s->incarnation + 1);
    *s = (struct server){.world = w, .slot = slot, .incarnation = incarnation};
    w->nodes[FIRST_SERVER + slot].up = !w->stored || store_open(s);
    trace(w, "server %u starts%s", slot,
          w->nodes[FIRST_SERVER + slot].up ? "" : ", but its disk fails");
}

struct state server_state(struct server *s, uint32_t shard) {
    if (!server_is_primary(s, shard))
        return (struct state){s->installed[shard], s->values[shard]};
    tell_applied(s, shard);
    return (struct state){replica_stamp(s->replica, shard), s->values[shard]};
}

void server_end(struct world *w, uint32_t slot, enum crash how) {
    static const char *const ways[] = {"ends", "is killed", "loses its power"};
    struct server *s = &w->servers[slot];
    trace(w, "server %u %s", slot, ways[how]);
    if (w->stored)
        store_close(s, how);
    replica_close(s->replica);
    s->replica = NULL;
    s->member = 0;
    w->nodes[FIRST_SERVER + slot].up = false;
}

static void open_replica(struct server *s, uint32_t member) {
    struct world *w = s->world;
    const struct replica_options options = {
        .member = member,
        .shards = w->shard_count,
        .buckets = w->bucket_count,
        .pulse = TICK,
        .silence = 60,
        .resend = 25,
        .patience = 120,
        .interval = w->memory_ack ? 15 : 0,
        .wholes = 2,
        .delayed = !w->durable,
    };
    s->host = (struct replica_host){
        .self = s,
        .read = host_read,
        .install = host_install,
        .hold = load_hold,
        .release = load_release,
        .keep = w->stored ? host_keep : NULL,
        .send = host_send,
        .propose = host_propose,
        .replicated = host_replicated,
        .closed = host_closed,
        .outdated = host_outdated,
    };
    s->member = member;
    s->lease = 0;
    if (replica_open(&s->replica, &options, &s->host, w->now, NULL))
        fault(w, "server %u cannot start", s->slot);
    for (uint32_t i = 0; s->replica && i < w->shard_count; i++)
        replica_restore(s->replica, i, s->installed[i]);
    w->stores[s->slot].replaced = false;
    trace(w, "server %u is member %u", s->slot, member);
}

const struct values *server_values(struct world *w, const struct server *s, uint32_t shard) {
    if (server_is_primary(s, shard))
        return &s->values[shard];
    struct replica_stamp top = replica_stamp(s->replica, shard);
    if (same_stamp(top, s->installed[shard]))
        return &s->values[shard];
    return stamp_values(w, shard, top);
}

// --- controllers --------------------------------------------------------------------------

static void find_member(struct server *s, const struct agreed_state *state) {
    for (uint32_t i = 0; i < state->count && !s->member; i++)
        if (state->servers[i].slot == s->slot && state->servers[i].incarnation == s->incarnation)
            open_replica(s, state->servers[i].member);
}

// Answers that were overtaken are taken as they come: the replica knows which is newer.
static void obey(struct server *s, const struct packet *packet) {
    const struct agreed_state *state = &packet->places.state;
    if (state->epoch > s->state.epoch)
        s->state = *state;
    tell_all_applied(s);
    if (state->assigned)
        replica_route(s->replica, state->places, s->world->bucket_count, s->world->now);
    if (packet->places.lease) {
        s->lease = packet->places.lease;
        replica_lease(s->replica, s->lease);
    }
}

// One that is gone for the controllers starts again, with what it has, as a new member.
static void receive_places(struct server *s, const struct packet *packet) {
    const struct agreed_state *state = &packet->places.state;
    if (!s->member)
        find_member(s, state);
    if (s->member && state_server(state, s->member)) {
        obey(s, packet);
    } else if (state->gone[s->slot] >= s->incarnation) {
        server_end(s->world, s->slot, CRASH_ORDERLY);
        server_start(s->world, s->slot);
    }
}

static void tick(struct server *s) {
    struct world *w = s->world;
    struct packet packet = {.kind = s->member ? PACKET_HEART : PACKET_JOIN, .sent = w->now};
    packet.member.slot = s->slot;
    packet.member.incarnation = s->incarnation;
    packet.member.member = s->member;
    packet.member.empty = w->stores[s->slot].replaced;
    bool due = !s->member || s->wants_places || s->ticks++ % 2 == 0;
    s->wants_places = false;
    if (due)
        to_controllers(s, &packet);
    if (s->replica) {
        tell_all_applied(s);
        replica_tick(s->replica, w->now);
    }
    if (w->stored)
        store_tick(s);
}

void server_receive(struct world *w, uint32_t slot, const struct packet *packet) {
    struct server *s = &w->servers[slot];
    if (packet->kind == PACKET_TIMER)
        packet_post(w, packet, TICK);
    if (!w->nodes[FIRST_SERVER + slot].up)
        return;
    if (packet->kind == PACKET_TIMER)
        tick(s);
    else if (packet->kind == PACKET_PLACES)
        receive_places(s, packet);
    else if (packet->kind == PACKET_FLUSH && packet->incarnation == s->incarnation)
        store_receive(s, packet->flushed);
    if (!s->replica)
        return;
    if (packet->kind == PACKET_REPLICA)
        replica_receive(s->replica, &packet->replica, w->now);
    else if (packet->kind == PACKET_PUSH)
        receive_push(s, &packet->request);
    else if (packet->kind == PACKET_PULL)
        receive_pull(s, &packet->request);
}
