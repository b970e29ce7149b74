// What must hold in every schedule, at each step and in the end.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim.h"

void fault(struct world *w, const char *format, ...) {
    if (*w->fault)
        return;
    int length =
        snprintf(w->fault, sizeof w->fault, "seed %" PRIu64 " at %" PRIu64 ": ", w->seed, w->now);
    va_list args;
    va_start(args, format);
    vsnprintf(w->fault + length, sizeof w->fault - (size_t)length, format, args);
    va_end(args);
}

// --- equal stamps imply equal values ------------------------------------------------------

static struct known_stamp *find_stamp(struct world *w, uint32_t shard, struct replica_stamp stamp) {
    size_t i = (size_t)(stamp.epoch * 2654435761u + stamp.version * 40503u + shard * 97u);
    for (i &= STAMPS - 1;; i = (i + 1) & (STAMPS - 1)) {
        struct known_stamp *known = &w->stamps[i];
        if (known->run != w->run ||
            (known->shard == shard && known->state.stamp.epoch == stamp.epoch &&
             known->state.stamp.version == stamp.version))
            return known;
    }
}

static struct known_stamp *know_stamp(struct world *w, uint32_t shard, struct replica_stamp stamp,
                                      const struct values *values) {
    struct known_stamp *known = find_stamp(w, shard, stamp);
    if (known->run != w->run)
        *known = (struct known_stamp){.run = w->run, .shard = shard, .state = {stamp, *values}};
    else if (memcmp(&known->state.values, values, sizeof *values) != 0)
        fault(w, "shard %u has two values at (%" PRIu64 ", %" PRIu64 ")", shard, stamp.epoch,
              stamp.version);
    if (values->version != stamp.version)
        fault(w, "shard %u has version %" PRIu64 " at (%" PRIu64 ", %" PRIu64 ")", shard,
              values->version, stamp.epoch, stamp.version);
    return known;
}

void check_stamp(struct world *w, uint32_t shard, struct replica_stamp stamp,
                 const struct values *values) {
    know_stamp(w, shard, stamp, values);
}

const struct values *stamp_values(struct world *w, uint32_t shard, struct replica_stamp stamp) {
    const struct known_stamp *known = find_stamp(w, shard, stamp);
    return known->run == w->run ? &known->state.values : NULL;
}

// --- what comes back from a store ---------------------------------------------------------

// A flush that had just begun, the next one, and ticks before either.
uint64_t store_window(const struct world *w) {
    return w->every + 2 * w->flush + 3 * TICK;
}

void check_has(struct world *w, uint32_t slot, uint32_t shard, const struct state *state) {
    know_stamp(w, shard, state->stamp, &state->values)->had[slot] = w->now;
    if (state->stamp.version == 0)
        w->none[slot][shard] = w->now;
}

void check_counts(struct world *w, uint32_t slot, uint32_t shard, struct replica_stamp stored) {
    struct known_stamp *known = find_stamp(w, shard, stored);
    if (known->run == w->run)
        known->had[slot] = w->now;
}

static uint64_t before_window(const struct world *w, uint64_t time) {
    return time > store_window(w) ? time - store_window(w) : 0;
}

void check_ended(struct world *w, uint32_t slot, uint64_t time, uint64_t answered) {
    w->stored_at[slot] = before_window(w, time);
    w->answered[slot][w->servers[slot].incarnation % INCARNATIONS] =
        before_window(w, time < answered ? time : answered);
}

// Of a shard that has no values any more the store keeps the last ones.
void check_restored(struct world *w, uint32_t slot, uint32_t shard, const struct state *state) {
    const struct known_stamp *known = find_stamp(w, shard, state->stamp);
    bool none = state->stamp.version == 0;
    if (known->run != w->run && !none)
        fault(w, "server %u restores shard %u at (%" PRIu64 ", %" PRIu64 "), which never was", slot,
              shard, state->stamp.epoch, state->stamp.version);
    if (w->none[slot][shard] < w->stored_at[slot] &&
        (known->run != w->run || known->had[slot] < w->stored_at[slot]))
        fault(w,
              "server %u restores shard %u at (%" PRIu64 ", %" PRIu64 "), older than the window: "
              "%" PRIu64 " < %" PRIu64,
              slot, shard, state->stamp.epoch, state->stamp.version, known->had[slot],
              w->stored_at[slot]);
    if (known->run == w->run)
        know_stamp(w, shard, state->stamp, &state->values);
}

// --- one primary commits per bucket and epoch ---------------------------------------------

void check_replicated(struct world *w, const struct server *server, uint32_t shard) {
    uint32_t bucket = proto_bucket_of(shard, w->bucket_count);
    uint64_t epoch = replica_bucket(server->replica, bucket).place.epoch;
    uint32_t *committer = &w->committer[bucket][epoch % EPOCHS];
    if (*committer && *committer != server->member)
        fault(w, "members %u and %u commit in epoch %" PRIu64 " of bucket %u", *committer,
              server->member, epoch, bucket);
    *committer = server->member;
}

// --- acknowledged pushes are on every member ----------------------------------------------

// The server that is this member; NULL when it has crashed.
static const struct server *living_member(const struct world *w, uint32_t member) {
    for (uint32_t i = 0; member != PROTO_NOBODY && i < SERVERS; i++)
        if (w->servers[i].member == member)
            return &w->servers[i];
    return NULL;
}

static void check_member(struct world *w, uint32_t member, uint32_t shard) {
    const struct server *server = living_member(w, member);
    if (!server || w->memory_ack)
        return;
    const struct values *values = server_values(w, server, shard);
    for (uint32_t i = 0; i < WORKERS; i++)
        for (uint32_t k = 0; k < PUSHES / 64; k++)
            if (!values || w->acked[shard][i][k] & ~values->applied[i][k])
                fault(w, "member %u lacks an acknowledged push to shard %u", member, shard);
}

static void check_members(struct world *w, uint32_t shard) {
    const struct proto_place *place = &w->agreed.places[proto_bucket_of(shard, w->bucket_count)];
    check_member(w, place->primary, shard);
    check_member(w, place->second, shard);
    check_member(w, place->third, shard);
}

// A primary that another returned beside may acknowledge again what it had acknowledged before.
void check_acknowledged(struct world *w, const struct request *request) {
    if (request->epoch < w->returned[proto_bucket_of(request->shard, w->bucket_count)])
        return;
    w->acked[request->shard][request->client][request->sequence / 64] |= UINT64_C(1)
                                                                         << request->sequence % 64;
    w->acknowledged++;
    struct push *push = &w->clients[request->client].pushes[request->sequence];
    if (!push->acknowledged || push->excused) // it was lost, and sent again
        push->acknowledged = w->now;
    push->excused = false;
    check_members(w, request->shard);
}

// --- a stale primary serves for a bounded time --------------------------------------------

// "leases only bound how long a stale primary answers": one that did not hear of its successor ends
// with its last lease, from a leader that may have lost the others already.
void check_serving(struct world *w, const struct server *server, uint32_t shard) {
    uint32_t bucket = proto_bucket_of(shard, w->bucket_count);
    uint64_t epoch = replica_bucket(server->replica, bucket).place.epoch;
    if (epoch < w->served[bucket] && w->now > w->changed_at[bucket] + LEASE)
        fault(w, "member %u serves bucket %u long after another became its primary", server->member,
              bucket);
}

static bool has_lease(const struct world *w, uint32_t member) {
    for (uint32_t slot = 0; slot < w->server_count; slot++)
        if (w->servers[slot].member == member && w->nodes[FIRST_SERVER + slot].up &&
            w->servers[slot].lease > w->now)
            return true;
    return false;
}

static uint64_t state_mark(const struct agreed_state *state) {
    return hash_bytes(state, sizeof *state) | 1;
}

// Not before its lease is over, whoever gave that. Who leads no more, and does not know it, may
// propose what it wants: that is not committed.
void check_takeover(struct world *w, uint32_t controller, uint32_t member,
                    const struct agreed_state *next) {
    w->controllers[controller].early = has_lease(w, member) ? state_mark(next) : 0;
}

static void check_takeovers(struct world *w, uint64_t committed) {
    for (uint32_t i = 0; i < w->controller_count; i++)
        if (w->controllers[i].early == committed)
            fault(w, "a primary is replaced while it has a lease");
}

static void note_primary(struct world *w, const struct agreed_state *before, uint32_t bucket) {
    if (before->places[bucket].primary == w->agreed.places[bucket].primary)
        return;
    w->served[bucket] = w->agreed.places[bucket].epoch;
    w->changed_at[bucket] = w->now;
}

// --- a member that has only what its store had --------------------------------------------

static const struct agreed_server *slot_server(const struct agreed_state *state, uint32_t slot) {
    for (uint32_t i = 0; i < state->count; i++)
        if (state->servers[i].slot == slot)
            return &state->servers[i];
    return NULL;
}

// Pushes that were acknowledged after this time.
static void excuse_pushes(struct world *w, uint32_t bucket, uint64_t since) {
    since = since > STUCK ? since - STUCK : 0;
    for (uint32_t i = 0; i < w->worker_count; i++)
        for (uint32_t k = 0; k < w->clients[i].next; k++) {
            struct push *push = &w->clients[i].pushes[k];
            if (proto_bucket_of(push->shard, w->bucket_count) != bucket || !push->acknowledged ||
                push->acknowledged < since)
                continue;
            push->excused = true;
            w->acked[push->shard][i][k / 64] &= ~(UINT64_C(1) << k % 64);
        }
}

// The network has lost, or holds up, all that it told one of them for long.
static bool is_silenced(const struct world *w, const struct node *node) {
    for (uint32_t i = 0; i < w->controller_count; i++)
        if (w->now - node->beat[i] >= GONE / 2)
            return true;
    return false;
}

// A member that lives and that the controllers can hear has all: then nobody may take its place.
static bool is_reached(const struct world *w, uint32_t member) {
    const struct server *server = living_member(w, member);
    const struct node *node = server ? &w->nodes[FIRST_SERVER + server->slot] : NULL;
    return node && w->now > node->hindered + 2 * GONE && !is_silenced(w, node);
}

static bool any_reached(const struct world *w, const struct proto_place *place) {
    return is_reached(w, place->primary) || is_reached(w, place->second) ||
           is_reached(w, place->third);
}

static bool is_member(const struct proto_place *place, uint32_t member) {
    return place->primary == member || place->second == member || place->third == member;
}

// "loss after a power cut is within the window", and there is none under ack = durable.
static void note_return(struct world *w, const struct agreed_state *before, uint32_t bucket,
                        uint32_t member) {
    const struct agreed_server *old = state_server(before, member);
    const struct agreed_server *new = old ? slot_server(&w->agreed, old->slot) : NULL;
    const struct proto_place *place = &w->agreed.places[bucket];
    if (!new || new->member == member || w->durable || !is_member(place, new->member))
        return;
    if (any_reached(w, &before->places[bucket])) {
        fault(w, "member %u returns to bucket %u, of which another member lives", new->member,
              bucket);
        return;
    }
    w->returned[bucket] = place->epoch;
    excuse_pushes(w, bucket, w->answered[old->slot][old->incarnation % INCARNATIONS]);
}

static void note_returns(struct world *w, const struct agreed_state *before, uint32_t bucket) {
    if (!before->assigned)
        return;
    note_return(w, before, bucket, before->places[bucket].primary);
    note_return(w, before, bucket, before->places[bucket].second);
    note_return(w, before, bucket, before->places[bucket].third);
}

// --- controllers --------------------------------------------------------------------------

void check_committed(struct world *w, uint64_t version, const struct agreed_state *state) {
    uint64_t hash = state_mark(state);
    uint64_t *chosen = &w->chosen[version % VERSIONS];
    if (*chosen && *chosen != hash)
        fault(w, "two states are committed as version %" PRIu64, version);
    *chosen = hash;
    check_takeovers(w, hash);
    if (version <= w->newest)
        return;
    struct agreed_state before = w->agreed;
    w->newest = version;
    w->agreed = *state;
    for (uint32_t b = 0; b < w->bucket_count; b++)
        note_primary(w, &before, b), note_returns(w, &before, b);
    for (uint32_t b = 0; state->assigned && b < w->bucket_count; b++)
        trace(w, "agreed: bucket %u epoch %" PRIu64 " primary %u, %d, %d, joiner %d", b,
              state->places[b].epoch, state->places[b].primary, (int)state->places[b].second,
              (int)state->places[b].third, (int)state->places[b].joiner);
    for (uint32_t i = 0; state->assigned && i < w->shard_count; i++)
        check_members(w, i);
}

void check_leader(struct world *w, uint32_t controller, uint64_t ballot) {
    for (uint32_t i = 0; i < w->ballot_count; i++)
        if (w->ballots[i] == ballot) {
            if (w->ballot_leader[i] != controller)
                fault(w, "controllers %u and %u commit under ballot %" PRIu64, w->ballot_leader[i],
                      controller, ballot);
            return;
        }
    if (w->ballot_count == VERSIONS)
        return;
    w->ballots[w->ballot_count] = ballot;
    w->ballot_leader[w->ballot_count++] = controller;
}

// --- what may be broken -------------------------------------------------------------------

// Nothing keeps this server from the controllers, and the leader has heard it lately.
static bool is_healthy(const struct world *w, const struct server *server) {
    uint32_t node = FIRST_SERVER + server->slot;
    if (w->nodes[node].paused > w->now)
        return false;
    for (uint32_t i = 0; i < w->controller_count; i++) {
        const struct controller *c = &w->controllers[i];
        bool silent = c->leads && w->now - c->heard[server->slot] > GONE / 2;
        if (w->cut[i][node] || w->cut[node][i] || (c->paxos && silent))
            return false;
    }
    return true;
}

void check_reach(struct world *w) {
    for (uint32_t i = 0; i < SERVERS; i++) {
        struct node *node = &w->nodes[FIRST_SERVER + i];
        bool hindered = !node->up || node->paused > w->now;
        for (uint32_t k = 0; k < w->controller_count; k++)
            hindered |= w->cut[FIRST_SERVER + i][k] || w->cut[k][FIRST_SERVER + i];
        node->hindered = hindered ? w->now : node->hindered;
    }
}

static bool survives(const struct world *w, const struct agreed_state *state, uint32_t without) {
    for (uint32_t b = 0; state->assigned && b < w->bucket_count; b++) {
        const uint32_t members[] = {state->places[b].primary, state->places[b].second,
                                    state->places[b].third};
        // With one copy the joiner may be all that is left as soon as it is complete.
        bool joins = state->places[b].joiner == without, lives = false, concerned = joins;
        if (joins && w->copies == 1)
            return false;
        for (int i = 0; i < 3; i++) {
            const struct server *server = living_member(w, members[i]);
            lives |= members[i] != without && server && is_healthy(w, server);
            concerned |= members[i] == without;
        }
        if (!lives && concerned)
            return false;
    }
    return true;
}

// Whether a member of each bucket lives, in the newest state and in each that may be committed yet.
// With one copy the joiner lives, too, which its primary may propose to leave the bucket to.
static bool is_held(const struct world *w, const struct agreed_state *state) {
    bool held = true;
    for (uint32_t b = 0; state->assigned && b < w->bucket_count; b++) {
        uint32_t joiner = w->copies == 1 ? state->places[b].joiner : PROTO_NOBODY;
        held &= living_member(w, state->places[b].primary) ||
                living_member(w, state->places[b].second) ||
                living_member(w, state->places[b].third);
        held &= joiner == PROTO_NOBODY || living_member(w, joiner);
    }
    return held;
}

// What is on its way may yet leave a bucket to one server alone.
static bool is_proposed(const struct world *w) {
    for (uint32_t i = 0; i < w->heap_size; i++)
        if (w->packets[w->heap[i].packet].kind == PACKET_PROPOSE)
            return true;
    return false;
}

bool all_held(const struct world *w) {
    bool held = w->agreed.assigned && is_held(w, &w->agreed) && !is_proposed(w);
    for (uint32_t i = 0; i < w->controller_count; i++)
        held &= !w->controllers[i].kept || is_held(w, &w->controllers[i].accepted);
    return held;
}

// The number of a server that may not have heard of it yet; 0: it is no member.
static uint32_t agreed_number(const struct world *w, uint32_t slot) {
    for (uint32_t i = 0; i < w->agreed.count; i++)
        if (w->agreed.servers[i].slot == slot)
            return w->agreed.servers[i].member;
    return 0;
}

// In the newest state, and in each that may yet be committed.
bool may_crash(struct world *w, uint32_t slot) {
    uint32_t known = w->servers[slot].member;
    uint32_t member = known ? known : agreed_number(w, slot);
    if (!w->agreed.assigned)
        return false; // it may be about to become a member
    if (!member)
        return w->copies > 1; // or a joiner
    if (is_proposed(w))
        return false;
    for (uint32_t i = 0; i < w->controller_count; i++)
        if (w->controllers[i].kept && w->controllers[i].record.state.version > w->newest &&
            !survives(w, &w->controllers[i].accepted, member))
            return false;
    return survives(w, &w->agreed, member);
}

// --- the end ------------------------------------------------------------------------------

// Those that may get buckets.
static uint32_t staying_servers(const struct world *w) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->agreed.count; i++)
        count += !w->agreed.servers[i].draining && living_member(w, w->agreed.servers[i].member);
    return count;
}

static bool pushes_done(const struct world *w) {
    for (uint32_t i = 0; i < w->worker_count; i++) {
        const struct client *c = &w->clients[i];
        for (uint32_t k = 0; k < c->wanted; k++)
            if (k >= c->next || c->pushes[k].state == PUSH_SENT)
                return false;
    }
    return true;
}

// Nothing is under way in this bucket, and nothing is wanted.
static bool bucket_quiet(const struct world *w, const struct proto_place *place) {
    uint32_t stay = staying_servers(w), wanted = stay < w->copies ? stay : w->copies;
    const uint32_t members[] = {place->primary, place->second, place->third};
    if (place->joiner != PROTO_NOBODY || placement_members(place) < wanted)
        return false;
    for (int i = 0; i < 3; i++) {
        const struct agreed_server *server = state_server(&w->agreed, members[i]);
        if (members[i] != PROTO_NOBODY && (!server || !living_member(w, members[i])))
            return false;
        if (server && server->draining && stay >= w->copies)
            return false;
    }
    return true;
}

static bool copies_same(const struct world *w, uint32_t member, uint32_t shard,
                        const struct server *primary) {
    const struct server *server = living_member(w, member);
    if (!server)
        return true;
    struct replica_stamp stamp = replica_stamp(primary->replica, shard);
    return server->installed[shard].epoch == stamp.epoch &&
           server->installed[shard].version == stamp.version &&
           !memcmp(&server->values[shard], &primary->values[shard], sizeof *server->values);
}

static bool shard_quiet(const struct world *w, uint32_t shard) {
    uint32_t bucket = proto_bucket_of(shard, w->bucket_count);
    const struct proto_place *place = &w->agreed.places[bucket];
    const struct server *primary = living_member(w, place->primary);
    if (!primary)
        return false;
    struct replica_bucket view = replica_bucket(primary->replica, bucket);
    return view.place.epoch == place->epoch && view.behind == 0 &&
           copies_same(w, place->second, shard, primary) &&
           copies_same(w, place->third, shard, primary);
}

bool is_quiet(struct world *w) {
    if (!w->agreed.assigned || !pushes_done(w))
        return false;
    for (uint32_t b = 0; b < w->bucket_count; b++)
        if (!bucket_quiet(w, &w->agreed.places[b]))
            return false;
    for (uint32_t i = 0; i < w->shard_count; i++)
        if (!shard_quiet(w, i))
            return false;
    return true;
}

// "every acknowledged push is applied exactly once, and none that was refused".
static void check_ledger(struct world *w, uint32_t shard) {
    const struct proto_place *place = &w->agreed.places[proto_bucket_of(shard, w->bucket_count)];
    const struct values *values = &living_member(w, place->primary)->values[shard];
    int32_t counters[COUNTERS] = {0};
    for (uint32_t i = 0; i < w->worker_count; i++)
        for (uint32_t k = 0; k < w->clients[i].next; k++) {
            const struct push *push = &w->clients[i].pushes[k];
            bool applied = push->shard == shard && values->applied[i][k / 64] >> k % 64 & 1;
            for (uint32_t c = 0; applied && c < COUNTERS; c++)
                counters[c] += push->mask >> c & 1;
            if (push->shard == shard && push->state == PUSH_DONE && !applied && !push->excused &&
                !w->memory_ack)
                fault(w, "push %u of worker %u is lost", k, i);
            if (applied && push->state == PUSH_DROPPED)
                fault(w, "push %u of worker %u was refused, and is applied", k, i);
        }
    if (memcmp(counters, values->counters, sizeof counters) != 0)
        fault(w, "shard %u has other sums than its pushes", shard);
}

void check_end(struct world *w) {
    for (uint32_t i = 0; i < w->shard_count; i++)
        check_ledger(w, i);
    trace(w, "quiet: %" PRIu64 " pushes acknowledged, %" PRIu64 " events", w->acknowledged,
          w->events);
}
