// Controllers: a Paxos register each, and on its leader the members, their leases, and the
// placement of buckets.
#include <string.h>

#include "core/error.h"
#include "sim.h"

enum {
    HEARTBEAT = 12,
    ELECTION = 50,
    AWAY = 50,
    PARTED = 500,
    OUTLIVES = 80, // two are heard within this if they ended at once
    ASSIGN = 600,  // by then buckets are given to those that are there
};

const struct agreed_server *state_server(const struct agreed_state *state, uint32_t member) {
    for (uint32_t i = 0; i < state->count; i++)
        if (state->servers[i].member == member)
            return &state->servers[i];
    return NULL;
}

// --- the register -------------------------------------------------------------------------

static void act_on(struct world *w, uint32_t i, const struct paxos_output *out);

// The cluster is founded: each member has its vote, and promised nothing yet. (Founding is in
// tests/unit/test_paxos.c.)
void controller_start(struct world *w, uint32_t i) {
    struct controller *c = &w->controllers[i];
    const struct paxos_config config = {
        .id = i,
        .members = w->controller_count,
        .seed = w->seed + w->order,
        .heartbeat = HEARTBEAT,
        .election = ELECTION,
        .state_max = sizeof(struct agreed_state),
    };
    if (paxos_open(&c->paxos, &config, &c->record, w->now, NULL))
        fault(w, "controller %u cannot start", i);
    c->knows = c->leads = false;
    memset(c->drain, 0, sizeof c->drain);
    w->nodes[i].up = true;
    trace(w, "controller %u starts", i);
}

void controller_crash(struct world *w, uint32_t i) {
    paxos_close(w->controllers[i].paxos);
    w->controllers[i].paxos = NULL;
    w->nodes[i].up = false;
    trace(w, "controller %u crashes", i);
}

static void keep_record(struct controller *c) {
    c->kept = true;
    c->record = paxos_record(c->paxos);
    memcpy(&c->accepted, c->record.state.bytes, c->record.state.length);
    c->record.state.bytes = (const uint8_t *)&c->accepted;
}

static void send_paxos(struct world *w, const struct proto_paxos *message) {
    struct packet packet = {
        .kind = PACKET_PAXOS, .from = (uint8_t)message->from, .to = (uint8_t)message->to};
    packet.paxos.message = *message;
    if (message->state.length > 0)
        memcpy(&packet.paxos.state, message->state.at, message->state.length);
    packet_send(w, &packet);
}

// A leader serves when its first state is committed: before, what it knows may be old. It has heard
// nobody yet.
static void follow_standing(struct world *w, struct controller *c) {
    bool leads = paxos_standing(c->paxos) == PAXOS_LEADER && (c->leads || paxos_ready(c->paxos));
    if (leads && !c->leads)
        c->since = w->now, c->inherited = paxos_inherited(c->paxos);
    c->leads = leads;
    c->early = leads ? c->early : 0;
}

static void take_committed(struct world *w, uint32_t i) {
    struct controller *c = &w->controllers[i];
    struct paxos_state state;
    if (!paxos_committed(c->paxos, &state))
        return;
    if (state.length > 0)
        memcpy(&c->state, state.bytes, state.length);
    else
        memset(&c->state, 0, sizeof c->state);
    c->knows = true;
    c->version = state.version;
    check_committed(w, state.version, &c->state);
    if (paxos_standing(c->paxos) == PAXOS_LEADER)
        check_leader(w, i, paxos_record(c->paxos).promised);
}

static void send_messages(struct world *w, const struct paxos_output *out, bool accepts) {
    for (uint32_t k = 0; k < out->count; k++)
        if (accepts == (out->messages[k].step == PROTO_PAXOS_ACCEPT))
            send_paxos(w, &out->messages[k]);
}

// What was not synced is lost with the crash, and nothing was sent that needed it.
static void act_on(struct world *w, uint32_t i, const struct paxos_output *out) {
    struct controller *c = &w->controllers[i];
    send_messages(w, out, true);
    if (out->persist && w->rate > 0 && !w->healed && happens(w, 5)) {
        controller_crash(w, i);
        return;
    }
    if (out->persist)
        keep_record(c);
    send_messages(w, out, false);
    follow_standing(w, c);
    if (out->committed)
        take_committed(w, i);
}

static bool may_propose(const struct controller *c) {
    return c->paxos && paxos_ready(c->paxos) && c->knows;
}

static void propose(struct world *w, uint32_t i, const struct agreed_state *next) {
    struct paxos_output out;
    if (!paxos_propose(w->controllers[i].paxos, next, sizeof *next, w->now, &out, NULL))
        act_on(w, i, &out);
}

// --- the state ----------------------------------------------------------------------------

static struct agreed_state draft(const struct controller *c) {
    struct agreed_state next = c->state;
    next.epoch++;
    if (next.next_member == 0)
        next.next_member = 1;
    return next;
}

static struct placement placement_of(const struct world *w, struct agreed_state *state) {
    return (struct placement){
        .copies = w->copies, .count = w->bucket_count, .places = state->places};
}

static uint64_t last_heard(const struct controller *c, const struct agreed_server *server) {
    uint64_t heard = c->heard[server->slot];
    return heard > c->since ? heard : c->since;
}

static uint32_t list_servers(const struct world *w, const struct controller *c,
                             const struct agreed_state *state, struct placement_server *servers) {
    for (uint32_t i = 0; i < state->count; i++) {
        const struct agreed_server *server = &state->servers[i];
        servers[i] = (struct placement_server){
            .member = server->member,
            .heard = w->now - c->heard[server->slot] < GONE / 2,
            .draining = server->draining,
        };
    }
    return state->count;
}

static void forget_server(struct agreed_state *next, uint32_t index) {
    next->gone[next->servers[index].slot] = next->servers[index].incarnation;
    next->count--;
    memmove(&next->servers[index], &next->servers[index + 1],
            (next->count - index) * sizeof *next->servers);
}

static void remove_server(struct world *w, struct agreed_state *next, uint32_t index) {
    struct placement placement = placement_of(w, next);
    placement_lose(&placement, next->servers[index].member, next->epoch);
    forget_server(next, index);
}

// Of a bucket of this server: whether another that has it may live, and none is known to. One that
// was not heard after this one may have died with it.
static bool others_may_live(const struct world *w, const struct controller *c,
                            const struct proto_place *place, const struct agreed_server *server) {
    const uint32_t members[] = {place->primary, place->second, place->third};
    bool may = false;
    for (int i = 0; i < 3; i++) {
        const struct agreed_server *other =
            members[i] == server->member ? NULL : state_server(&c->state, members[i]);
        if (!other || w->now - c->heard[other->slot] >= GONE / 2)
            continue;
        if (c->heard[other->slot] > c->heard[server->slot] + OUTLIVES)
            return false;
        may = true;
    }
    return may;
}

// A leader has to hear the members, or their silence, before it knows whether one that has all
// lives: until then nobody returns with what a store had.
static bool may_return(const struct world *w, const struct controller *c,
                       const struct agreed_server *server) {
    bool knows = w->now - c->since >= GONE;
    for (uint32_t b = 0; c->state.assigned && b < w->bucket_count; b++) {
        const struct proto_place *place = &c->state.places[b];
        bool here = place->primary == server->member || place->second == server->member ||
                    place->third == server->member;
        knows &= !here || !others_may_live(w, c, place, server);
    }
    return knows;
}

// It was started again, and has what its store had.
static void return_server(struct world *w, const struct controller *c, struct agreed_state *next,
                          uint32_t index, bool empty) {
    struct placement placement = placement_of(w, next);
    struct placement_server servers[LIVING];
    bool lacks[BUCKETS];
    memset(lacks, empty, sizeof lacks);
    uint32_t member = next->servers[index].member;
    forget_server(next, index);
    uint32_t count = list_servers(w, c, next, servers);
    if (next->assigned)
        placement_succeed(&placement, member, next->next_member, lacks, servers, count,
                          next->epoch);
}

// --- what is asked of it ------------------------------------------------------------------

static void send_places(struct world *w, uint32_t i, uint32_t to, uint64_t lease) {
    struct packet packet = {.kind = PACKET_PLACES, .from = (uint8_t)i, .to = (uint8_t)to};
    packet.places.state = w->controllers[i].state;
    packet.places.lease = lease;
    packet_send(w, &packet);
}

static void receive_join(struct world *w, uint32_t i, const struct packet *packet) {
    struct controller *c = &w->controllers[i];
    uint32_t slot = packet->member.slot;
    uint16_t incarnation = packet->member.incarnation;
    if (!c->leads || !c->knows)
        return;
    if (incarnation <= c->state.gone[slot]) {
        send_places(w, i, packet->from, 0);
        return;
    }
    struct agreed_state next = draft(c);
    for (uint32_t k = 0; k < c->state.count; k++) {
        if (c->state.servers[k].slot != slot)
            continue;
        if (c->state.servers[k].incarnation == incarnation)
            send_places(w, i, packet->from, 0);
        if (c->state.servers[k].incarnation >= incarnation ||
            (w->stored && !may_return(w, c, &c->state.servers[k])))
            return;
        if (w->stored)
            return_server(w, c, &next, k, packet->member.empty);
        else
            remove_server(w, &next, k); // it was started again
    }
    if (!may_propose(c) || next.count == LIVING)
        return;
    next.servers[next.count++] = (struct agreed_server){
        .member = next.next_member++, .slot = (uint16_t)slot, .incarnation = incarnation};
    c->heard[slot] = w->now;
    c->drain[slot] = false;
    propose(w, i, &next);
}

// The end of a lease that was asked for at this time; 0: none. Who is at an agreement answers
// nobody meanwhile.
static uint64_t lease_until(const struct world *w, const struct controller *c, uint64_t asked) {
    uint64_t confirmed = paxos_confirmed(c->paxos, w->now);
    bool may = may_propose(c) && confirmed > 0 && confirmed + LEASE > w->now;
    return may ? asked + confirmed + LEASE - w->now : 0;
}

static void receive_heart(struct world *w, uint32_t i, const struct packet *packet) {
    struct controller *c = &w->controllers[i];
    if (!c->leads || !c->knows)
        return;
    const struct agreed_server *server = state_server(&c->state, packet->member.member);
    if (server)
        c->heard[server->slot] = w->now;
    send_places(w, i, packet->from, server ? lease_until(w, c, packet->sent) : 0);
}

// Whether the member may still serve as the primary. "Safety never rests on clocks": it only spares
// readers a stale primary.
static bool has_lease(const struct world *w, const struct controller *c, uint32_t member) {
    const struct agreed_server *server = state_server(&c->state, member);
    uint64_t heard = server ? c->heard[server->slot] : 0;
    return w->now < c->inherited + LEASE || w->now < heard + LEASE;
}

static void receive_proposal(struct world *w, uint32_t i, const struct proto_proposal *proposal) {
    struct controller *c = &w->controllers[i];
    struct placement_server servers[LIVING];
    if (!may_propose(c) || !c->state.assigned)
        return;
    if (proposal->change == PROTO_CHANGE_TAKE_OVER && has_lease(w, c, proposal->primary))
        return;
    struct agreed_state next = draft(c);
    struct placement placement = placement_of(w, &next);
    uint32_t count = list_servers(w, c, &next, servers);
    if (!placement_propose(&placement, proposal, servers, count, next.epoch))
        return;
    if (proposal->change == PROTO_CHANGE_TAKE_OVER)
        check_takeover(w, i, proposal->primary, &next);
    if (proposal->change == PROTO_CHANGE_DROP)
        partings_add(&c->partings, proposal->primary, proposal->member, (double)(w->now + PARTED));
    propose(w, i, &next);
}

// --- time ---------------------------------------------------------------------------------

static bool lose_silent(struct world *w, const struct controller *c, struct agreed_state *next) {
    struct placement_server servers[LIVING];
    bool changed = false;
    for (uint32_t k = next->count; k-- > 0;) {
        struct placement placement = placement_of(w, next);
        uint32_t count = list_servers(w, c, next, servers);
        if (w->now - last_heard(c, &next->servers[k]) < GONE ||
            (next->assigned &&
             !placement_may_lose(&placement, next->servers[k].member, servers, count)))
            continue;
        remove_server(w, next, k);
        changed = true;
    }
    return changed;
}

static bool drain_servers(const struct controller *c, struct agreed_state *next) {
    bool changed = false;
    for (uint32_t k = 0; k < next->count; k++) {
        changed |= c->drain[next->servers[k].slot] && !next->servers[k].draining;
        next->servers[k].draining |= c->drain[next->servers[k].slot];
    }
    return changed;
}

static bool place_buckets(const struct world *w, struct controller *c, struct agreed_state *next) {
    struct placement placement = placement_of(w, next);
    partings_expire(&c->partings, (double)w->now);
    placement.parted = c->partings.items;
    placement.parted_count = c->partings.count;
    struct placement_server servers[LIVING];
    uint32_t count = list_servers(w, c, next, servers);
    if (next->assigned)
        return placement_fill(&placement, servers, count, next->epoch);
    if (count == 0 || (count < w->copies && w->now < ASSIGN))
        return false;
    next->assigned = true;
    placement_assign(&placement, servers, count, next->epoch);
    return true;
}

static void tick(struct world *w, uint32_t i) {
    struct controller *c = &w->controllers[i];
    struct paxos_output out;
    paxos_tick(c->paxos, w->now, &out);
    act_on(w, i, &out);
    if (!may_propose(c))
        return;
    struct agreed_state next = draft(c);
    bool changed = lose_silent(w, c, &next);
    changed |= drain_servers(c, &next);
    changed |= place_buckets(w, c, &next);
    if (changed)
        propose(w, i, &next);
}

// One that was stopped has heard nobody meanwhile, which says nothing of the members.
static void look_at_clock(const struct world *w, struct controller *c) {
    if (w->now - c->stepped > AWAY)
        c->since = c->inherited = w->now;
    c->stepped = w->now;
}

void controller_receive(struct world *w, uint32_t i, const struct packet *packet) {
    struct controller *c = &w->controllers[i];
    struct paxos_output out;
    if (packet->kind == PACKET_TIMER)
        packet_post(w, packet, TICK / 2);
    if (!c->paxos)
        return;
    look_at_clock(w, c);
    switch (packet->kind) {
    case PACKET_TIMER:
        tick(w, i);
        break;
    case PACKET_PAXOS:
        paxos_receive(c->paxos, &packet->paxos.message, w->now, &out);
        act_on(w, i, &out);
        break;
    case PACKET_JOIN:
        receive_join(w, i, packet);
        break;
    case PACKET_HEART:
        receive_heart(w, i, packet);
        break;
    case PACKET_DRAIN:
        c->drain[packet->member.slot] = true;
        break;
    case PACKET_PROPOSE:
        receive_proposal(w, i, &packet->proposal);
        break;
    default: // PACKET_ASK
        if (c->knows)
            send_places(w, i, packet->from, 0);
    }
}
