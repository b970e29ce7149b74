// Who has which role for a bucket, and what this server proposes to the controllers.
#include <string.h>

#include "replica/replica_internal.h"

static enum replica_role role_in(const struct replica *r, const struct proto_place *place) {
    uint32_t member = r->options.member;
    if (place->primary == member)
        return REPLICA_PRIMARY;
    if (place->second == member || place->third == member)
        return REPLICA_SECONDARY;
    return place->joiner == member ? REPLICA_JOINER : REPLICA_NONE;
}

// The live values keep a stamp of the old epoch, in which only this server made stamps. Pushes that
// were not replicated are in them: whoever becomes the primary replaces them if it has others. This
// server may be the next one: then they count, so they are to be kept.
static void retire(struct replica *r, struct shard *shard, uint64_t epoch, enum replica_role role) {
    bool changed = shard->changed;
    round_drop(r, shard);
    if (changed)
        shard->stamp = (struct replica_stamp){epoch, shard->live};
    shard->round = (struct round){0};
    shard->changed = shard->open = false;
    shard->dirty = 0;
    r->host->closed(r->host->self, shard_number(r, shard));
    if (changed && is_durable(r) && role != REPLICA_NONE)
        copy_keep(r, shard, shard->stamp, NULL);
    else if (changed)
        shard->kept = true; // nobody will ask for it
}

// "the new primary commits everything it has prepared": each replicated push is in it. Members that
// have not prepared it have its base, and are sent the same load.
static void take_over(struct replica *r, struct shard *shard) {
    const struct held held = shard->held;
    struct round round = {.base = shard->stamp};
    if (held.any && !held.whole) {
        r->host->hold(r->host->self, held.load);
        round.load = held.load;
        round.loaded = round.blocks = held.blocks;
    }
    copy_install(r, shard);
    if (!round.load)
        round.base = shard->stamp;
    shard->round = round;
    shard->live = shard->stamp.version;
}

void bucket_place(struct replica *r, struct bucket *bucket, const struct proto_place *place,
                  uint64_t now) {
    enum replica_role before = bucket->role, after = role_in(r, place);
    uint64_t epoch = bucket->place.epoch;
    uint32_t primary = bucket->place.primary;
    if (place->epoch <= epoch)
        return;
    bucket->place = *place;
    bucket->role = after;
    bucket->alive = bucket->counted = false;
    memset(bucket->answered, 0, sizeof bucket->answered);
    if (before == REPLICA_NONE || place->primary != primary)
        bucket->heard = now;
    for (struct shard *s = shard_first(r, bucket); s; s = shard_next(r, s)) {
        if (before == REPLICA_PRIMARY && after != REPLICA_PRIMARY)
            retire(r, s, epoch, after);
        if (before != REPLICA_PRIMARY && after == REPLICA_PRIMARY)
            take_over(r, s);
        if (after == REPLICA_PRIMARY)
            round_restart(r, s, now);
        if (after == REPLICA_NONE)
            copy_discard(r, s);
    }
}

// --- proposals ----------------------------------------------------------------------------

static void propose(struct replica *r, const struct bucket *bucket, enum proto_change change,
                    uint32_t member) {
    const struct proto_proposal proposal = {
        .change = (uint16_t)change,
        .bucket = bucket->place.bucket,
        .epoch = bucket->place.epoch,
        .primary = bucket->place.primary,
        .member = member,
    };
    r->host->propose(r->host->self, &proposal);
}

// What was committed last is there, and what is under way on its way: a shard that is pushed to all
// the time is never between two rounds for long.
static bool keeps_up(const struct peer *peer) {
    return peer->state == PEER_LEVEL || (peer->state == PEER_ASKED && peer->based);
}

static bool joiner_has_all(struct replica *r, const struct bucket *bucket) {
    if (bucket->place.joiner == PROTO_NOBODY || !bucket->alive)
        return false;
    for (struct shard *s = shard_first(r, bucket); s; s = shard_next(r, s))
        if (!keeps_up(&s->round.peers[SLOT_JOINER]))
            return false;
    return true;
}

// Who answers pulses while loads are to be kept waits for its disk, which may be slow or full.
static bool bucket_lacks(struct replica *r, const struct bucket *bucket, int slot, uint64_t now) {
    bool answers = now - bucket->answered[slot] < r->options.patience;
    bool keeps = is_durable(r) || (r->host->keep && slot == SLOT_JOINER);
    if (slot_member(bucket, slot) == PROTO_NOBODY || (keeps && answers))
        return false;
    for (struct shard *s = shard_first(r, bucket); s; s = shard_next(r, s))
        if (round_lacks(r, s, slot, now))
            return true;
    return false;
}

// "A member is dropped only by a new epoch": until then rounds wait for it.
static void primary_tick(struct replica *r, struct bucket *bucket, uint64_t now) {
    bucket->counted |= joiner_has_all(r, bucket);
    for (int slot = 0; slot < SLOTS; slot++)
        if (bucket_lacks(r, bucket, slot, now)) {
            propose(r, bucket, PROTO_CHANGE_DROP, slot_member(bucket, slot));
            return;
        }
    if (bucket->counted)
        propose(r, bucket, PROTO_CHANGE_COMPLETE, bucket->place.joiner);
}

// "Parameter servers that are secondary for a bucket initiate a role change proposal to be a
//  primary along with previous primary lease information to the controller in the event of
//  prolonged absence of heart beats from the current primary." (Adam 3.3.3)
static void secondary_tick(struct replica *r, const struct bucket *bucket, uint64_t now) {
    if (now - bucket->heard >= r->options.silence)
        propose(r, bucket, PROTO_CHANGE_TAKE_OVER, r->options.member);
}

void bucket_tick(struct replica *r, struct bucket *bucket, uint64_t now) {
    if (bucket->role == REPLICA_PRIMARY)
        primary_tick(r, bucket, now);
    else if (bucket->role == REPLICA_SECONDARY)
        secondary_tick(r, bucket, now);
}
