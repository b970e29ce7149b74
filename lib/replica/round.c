// The primary's side: rounds that bring the values of a shard to all other servers of its bucket.
#include "replica/replica_internal.h"

static bool is_alone(const struct bucket *bucket) {
    for (int slot = 0; slot < SLOTS; slot++)
        if (slot_member(bucket, slot) != PROTO_NOBODY)
            return false;
    return true;
}

// A round waits for each member ("A push is replicated when it is on every member"), for a joiner
// that has everything, and, so that one that copies a busy shard can keep up with it, for a joiner
// that was sent the round.
static bool is_awaited(const struct bucket *bucket, const struct shard *shard, int slot) {
    const struct peer *peer = &shard->round.peers[slot];
    if (slot_member(bucket, slot) == PROTO_NOBODY)
        return false;
    return slot != SLOT_JOINER || bucket->counted || (peer->tried && !peer->late);
}

static bool all_prepared(const struct bucket *bucket, const struct shard *shard) {
    for (int slot = 0; slot < SLOTS; slot++)
        if (is_awaited(bucket, shard, slot) && shard->round.peers[slot].state != PEER_LEVEL)
            return false;
    return shard->kept;
}

void round_drop(struct replica *r, struct shard *shard) {
    struct round *round = &shard->round;
    if (!round->load)
        return;
    r->wholes -= round->whole;
    r->host->release(r->host->self, round->load);
    round->load = NULL;
    round->loaded = 0;
    round->whole = false;
}

// --- begin and end ------------------------------------------------------------------------

// The live values get a stamp: what was prepared before is not the newest any more.
static void stamp_values(struct replica *r, struct shard *shard) {
    shard->stamp = (struct replica_stamp){bucket_of(r, shard)->place.epoch, shard->live};
    shard->changed = false;
    shard->kept = !is_durable(r);
    shard->keeping = shard->stamp;
    for (int slot = 0; slot < SLOTS; slot++) {
        struct peer *peer = &shard->round.peers[slot];
        peer->commit = false; // the round's base says it
        if (peer->state == PEER_LEVEL)
            peer->state = PEER_ASKED;
    }
}

// Stamps tell values apart: what was read is of the version that it had then.
static void note_read(struct shard *shard, const struct replica_read *read) {
    shard->changed |= read->version > shard->live;
    shard->live = read->version;
    shard->dirty |= read->changed;
}

// Reads what is new since the base, or everything. False: not now.
static bool read_load(struct replica *r, struct shard *shard, bool whole) {
    struct round *round = &shard->round;
    uint64_t blocks = whole ? REPLICA_ALL : round->blocks | shard->dirty;
    struct replica_read read = {.version = shard->live};
    if (whole && r->wholes >= r->options.wholes)
        return false;
    struct replica_load *load = r->host->read(r->host->self, shard_number(r, shard), blocks, &read);
    if (!load)
        return false;
    round_drop(r, shard);
    note_read(shard, &read);
    round->load = load;
    round->loaded = blocks | read.changed;
    round->whole = whole;
    r->wholes += whole;
    return true;
}

// A new round, or the present one with the whole shard for those who are behind.
static bool begin_round(struct replica *r, struct shard *shard, bool whole, uint64_t now) {
    struct round *round = &shard->round;
    bool needed = !is_alone(bucket_of(r, shard)) || is_durable(r);
    if (needed && !read_load(r, shard, whole))
        return false;
    round->blocks |= shard->dirty;
    shard->dirty = 0;
    if (shard->changed)
        stamp_values(r, shard);
    round->pending = true;
    round->begun = now;
    for (int slot = 0; slot < SLOTS; slot++)
        round->peers[slot].tried = false;
    if (!shard->kept)
        r->host->keep(r->host->self, shard_number(r, shard), shard->stamp, round->load);
    return true;
}

// "COMMIT": all whom the round waits for have prepared it.
static void end_round(struct replica *r, struct shard *shard) {
    struct round *round = &shard->round;
    round->pending = false;
    round->base = shard->stamp;
    round->blocks = 0;
    round_drop(r, shard);
    shard->open = true;
    shard->committed = shard->stamp.version;
    for (int slot = 0; slot < SLOTS; slot++)
        round->peers[slot].commit = round->peers[slot].based =
            round->peers[slot].state == PEER_LEVEL;
    r->host->replicated(r->host->self, shard_number(r, shard), shard->committed);
}

// --- sending ------------------------------------------------------------------------------

static void send_round(struct replica *r, struct shard *shard, int slot, uint64_t now) {
    struct round *round = &shard->round;
    struct peer *peer = &round->peers[slot];
    struct replica_message m =
        message_to(r, shard, REPLICA_PREPARE, slot_member(bucket_of(r, shard), slot));
    m.base = round->base;
    m.stamp = shard->stamp;
    m.whole = peer->state == PEER_BEHIND;
    m.blocks = m.whole ? REPLICA_ALL : round->blocks;
    m.load = m.whole || !stamp_same(m.base, m.stamp) ? round->load : NULL;
    if (!peer->tried)
        peer->first = now;
    peer->tried = true;
    peer->sent = now;
    r->host->send(r->host->self, &m);
}

static bool is_due(const struct replica *r, const struct shard *shard, int slot, uint64_t now) {
    const struct peer *peer = &shard->round.peers[slot];
    uint32_t member = slot_member(&r->buckets[shard->bucket], slot);
    if (member == PROTO_NOBODY || peer->state == PEER_LEVEL)
        return false;
    if (peer->late)
        return now - peer->sent >= r->options.patience;
    return !peer->tried || now - peer->sent >= r->options.resend;
}

static bool wants_whole(const struct replica *r, const struct shard *shard, int slots,
                        uint64_t now) {
    for (int slot = 0; slot < slots; slot++)
        if (shard->round.peers[slot].state == PEER_BEHIND && is_due(r, shard, slot, now))
            return true;
    return false;
}

static void send_due(struct replica *r, struct shard *shard, uint64_t now) {
    bool whole = wants_whole(r, shard, SLOTS, now) && shard->round.loaded != REPLICA_ALL;
    if (whole && !begin_round(r, shard, true, now))
        r->starved |= wants_whole(r, shard, SLOT_JOINER, now);
    for (int slot = 0; slot < SLOTS; slot++) {
        bool behind = shard->round.peers[slot].state == PEER_BEHIND;
        if (is_due(r, shard, slot, now) && (!behind || shard->round.loaded == REPLICA_ALL))
            send_round(r, shard, slot, now);
    }
}

static void send_commits(struct replica *r, struct shard *shard) {
    const struct bucket *bucket = bucket_of(r, shard);
    for (int slot = 0; slot < SLOTS; slot++) {
        if (!shard->round.peers[slot].commit || slot_member(bucket, slot) == PROTO_NOBODY)
            continue;
        struct replica_message m = message_to(r, shard, REPLICA_COMMIT, slot_member(bucket, slot));
        m.stamp = shard->stamp;
        r->host->send(r->host->self, &m);
    }
}

// --- events -------------------------------------------------------------------------------

void round_advance(struct replica *r, struct shard *shard, uint64_t now) {
    const struct bucket *bucket = bucket_of(r, shard);
    struct round *round = &shard->round;
    while (all_prepared(bucket, shard)) {
        if (round->pending)
            end_round(r, shard);
        bool soon = round->begun > 0 && now - round->begun < r->options.interval;
        if (!shard->changed || soon || !begin_round(r, shard, false, now))
            break;
    }
    send_due(r, shard, now);
}

void round_restart(struct replica *r, struct shard *shard, uint64_t now) {
    for (int slot = 0; slot < SLOTS; slot++)
        shard->round.peers[slot] = (struct peer){0};
    shard->round.pending = true;
    round_advance(r, shard, now);
}

// What is the peer's state, by a message that may be older than others?
static enum peer_state told_state(const struct shard *shard, enum peer_state before,
                                  const struct replica_message *m) {
    if (before == PEER_LEVEL || stamp_same(m->stamp, shard->stamp))
        return PEER_LEVEL;
    if (stamp_same(m->stamp, shard->round.base))
        return PEER_ASKED;
    return stamp_same(m->asked, shard->stamp) ? PEER_BEHIND : before;
}

void round_answer(struct replica *r, struct shard *shard, int slot, const struct replica_message *m,
                  uint64_t now) {
    struct peer *peer = &shard->round.peers[slot];
    enum peer_state state = told_state(shard, peer->state, m);
    peer->late = false;
    if (state != peer->state && state != PEER_LEVEL)
        peer->tried = false;
    peer->state = state;
    if (stamp_same(m->committed, shard->stamp))
        peer->commit = false;
    round_advance(r, shard, now);
}

bool round_lacks(const struct replica *r, const struct shard *shard, int slot, uint64_t now) {
    const struct peer *peer = &shard->round.peers[slot];
    bool silent = peer->tried && now - peer->first >= r->options.patience;
    return peer->state != PEER_LEVEL && (peer->late || silent);
}

void round_feed(struct replica *r, struct shard *shard, uint64_t now) {
    if (wants_whole(r, shard, SLOT_JOINER, now))
        round_advance(r, shard, now);
}

void round_tick(struct replica *r, struct shard *shard, uint64_t now) {
    const struct bucket *bucket = bucket_of(r, shard);
    if (!bucket->counted && round_lacks(r, shard, SLOT_JOINER, now))
        shard->round.peers[SLOT_JOINER].late = true;
    round_advance(r, shard, now);
    if (!shard->round.pending)
        send_commits(r, shard);
}
