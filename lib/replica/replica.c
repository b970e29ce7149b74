#include "replica/replica.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "replica/replica_internal.h"

// --- open and close -----------------------------------------------------------------------

static bool is_usable(const struct replica_options *o) {
    return o->shards > 0 && o->buckets > 0 && o->pulse > 0 && o->silence > 0 && o->resend > 0 &&
           o->patience > 0 && o->wholes > 0;
}

static void link_shards(struct replica *r) {
    for (uint32_t b = 0; b < r->options.buckets; b++)
        r->buckets[b] = (struct bucket){
            .place = {.bucket = b,
                      .primary = PROTO_NOBODY,
                      .second = PROTO_NOBODY,
                      .third = PROTO_NOBODY,
                      .joiner = PROTO_NOBODY},
            .first = PROTO_NOBODY,
        };
    for (uint32_t i = r->options.shards; i-- > 0;) {
        struct bucket *bucket = &r->buckets[proto_bucket_of(i, r->options.buckets)];
        r->shards[i] =
            (struct shard){.bucket = bucket->place.bucket, .next = bucket->first, .kept = true};
        bucket->first = i;
    }
}

int replica_open(struct replica **out, const struct replica_options *options,
                 const struct replica_host *host, uint64_t now, struct error *err) {
    *out = NULL;
    if (!is_usable(options))
        return error_set(err, STATUS_USAGE, "options of replication that are zero");
    struct replica *r = mem_zeroed(1, sizeof *r);
    if (!r)
        return error_nomem(err);
    r->options = *options;
    r->host = host;
    r->deadline = now + options->pulse;
    r->shards = mem_zeroed(options->shards, sizeof *r->shards);
    r->buckets = mem_zeroed(options->buckets, sizeof *r->buckets);
    r->others = mem_zeroed(options->buckets, SLOTS * sizeof *r->others);
    if (!r->shards || !r->buckets || !r->others) {
        free(r->shards), free(r->buckets), free(r->others), free(r);
        return error_nomem(err);
    }
    link_shards(r);
    *out = r;
    return STATUS_OK;
}

void replica_close(struct replica *r) {
    if (!r)
        return;
    for (uint32_t i = 0; i < r->options.shards; i++) {
        round_drop(r, &r->shards[i]);
        copy_drop(r, &r->shards[i]);
    }
    free(r->shards);
    free(r->buckets);
    free(r->others);
    free(r);
}

void replica_restore(struct replica *r, uint32_t shard, struct replica_stamp stamp) {
    r->shards[shard].stamp = stamp;
}

// --- messages -----------------------------------------------------------------------------

struct replica_message message_to(struct replica *r, const struct shard *shard,
                                  enum replica_kind kind, uint32_t to) {
    return (struct replica_message){
        .kind = kind,
        .from = r->options.member,
        .to = to,
        .shard = shard_number(r, shard),
        .epoch = bucket_of(r, shard)->place.epoch,
    };
}

static void hear_primary(struct replica *r, uint32_t from, uint64_t now) {
    const struct replica_message alive = {
        .kind = REPLICA_ALIVE, .from = r->options.member, .to = from};
    for (uint32_t b = 0; b < r->options.buckets; b++)
        if (r->buckets[b].place.primary == from)
            r->buckets[b].heard = now;
    r->host->send(r->host->self, &alive);
}

static int slot_of(const struct bucket *bucket, uint32_t member) {
    int slot = 0;
    while (slot < SLOTS && slot_member(bucket, slot) != member)
        slot++;
    return slot;
}

static void hear_other(struct replica *r, uint32_t from, uint64_t now) {
    for (uint32_t b = 0; b < r->options.buckets; b++) {
        struct bucket *bucket = &r->buckets[b];
        int slot = slot_of(bucket, from);
        if (slot < SLOTS)
            bucket->answered[slot] = now;
        bucket->alive |= slot == SLOT_JOINER;
    }
}

// Of the present epoch, in which each side knows the other's role.
static void receive_present(struct replica *r, struct shard *shard, const struct replica_message *m,
                            uint64_t now) {
    struct bucket *bucket = bucket_of(r, shard);
    bool copies = bucket->role == REPLICA_SECONDARY || bucket->role == REPLICA_JOINER;
    if (m->kind == REPLICA_PREPARED) {
        int slot = slot_of(bucket, m->from);
        if (bucket->role == REPLICA_PRIMARY && slot < SLOTS)
            round_answer(r, shard, slot, m, now);
    } else if (copies && m->from == bucket->place.primary) {
        bucket->heard = now;
        if (m->kind == REPLICA_PREPARE)
            copy_prepare(r, shard, m);
        else if (m->kind == REPLICA_COMMIT)
            copy_commit(r, shard, m);
    }
}

// "Safety from epochs, never from clocks": lower ones are refused, of higher ones nothing is
// believed before the controllers have told of them.
static void receive_epoch(struct replica *r, struct shard *shard, const struct replica_message *m,
                          uint64_t now) {
    uint64_t epoch = bucket_of(r, shard)->place.epoch;
    if (m->epoch > epoch) {
        r->host->outdated(r->host->self);
    } else if (m->epoch == epoch) {
        receive_present(r, shard, m, now);
    } else if (m->kind == REPLICA_PREPARE || m->kind == REPLICA_COMMIT) {
        struct replica_message stale = message_to(r, shard, REPLICA_STALE, m->from);
        r->host->send(r->host->self, &stale);
    }
}

// Members that are behind after a takeover keep the run waiting: the next ones are sent their
// shards as soon as others have theirs. Joiners wait for the next tick.
static void feed_members(struct replica *r, uint64_t now) {
    if (!r->starved || r->wholes >= r->options.wholes)
        return;
    r->starved = false;
    for (uint32_t i = 0; i < r->options.shards; i++)
        if (bucket_of(r, &r->shards[i])->role == REPLICA_PRIMARY)
            round_feed(r, &r->shards[i], now);
}

void replica_receive(struct replica *r, const struct replica_message *m, uint64_t now) {
    if (m->to != r->options.member || m->from == m->to)
        return;
    if (m->kind == REPLICA_PULSE)
        hear_primary(r, m->from, now);
    else if (m->kind == REPLICA_ALIVE)
        hear_other(r, m->from, now);
    else if (m->shard < r->options.shards)
        receive_epoch(r, &r->shards[m->shard], m, now);
    feed_members(r, now);
}

// --- the host's events --------------------------------------------------------------------

static void add_other(struct replica *r, uint32_t member) {
    for (uint32_t i = 0; i < r->other_count; i++)
        if (r->others[i] == member)
            return;
    if (member != PROTO_NOBODY)
        r->others[r->other_count++] = member;
}

static void find_others(struct replica *r) {
    r->other_count = 0;
    for (uint32_t b = 0; b < r->options.buckets; b++)
        for (int slot = 0; r->buckets[b].role == REPLICA_PRIMARY && slot < SLOTS; slot++)
            add_other(r, slot_member(&r->buckets[b], slot));
}

void replica_route(struct replica *r, const struct proto_place *places, uint32_t count,
                   uint64_t now) {
    for (uint32_t i = 0; i < count; i++)
        if (places[i].bucket < r->options.buckets)
            bucket_place(r, &r->buckets[places[i].bucket], &places[i], now);
    find_others(r);
}

void replica_lease(struct replica *r, uint64_t until) {
    r->lease = until;
}

void replica_applied(struct replica *r, uint32_t shard, uint64_t blocks, uint64_t version,
                     uint64_t now) {
    struct shard *s = &r->shards[shard];
    bool primary = bucket_of(r, s)->role == REPLICA_PRIMARY;
    INVARIANT(primary);
    if (!primary || version <= s->live)
        return;
    s->live = version;
    s->dirty |= blocks;
    s->changed = true;
    if (!s->round.pending)
        round_advance(r, s, now);
}

void replica_kept(struct replica *r, uint32_t shard, struct replica_stamp stamp, uint64_t now) {
    struct shard *s = &r->shards[shard];
    enum replica_role role = bucket_of(r, s)->role;
    if (s->kept || !stamp_same(stamp, s->keeping))
        return;
    s->kept = true;
    if (role == REPLICA_PRIMARY)
        round_advance(r, s, now);
    else if (role != REPLICA_NONE)
        copy_answer(r, s, shard_top(s));
}

// "Each parameter server machine sends heart beats to the appropriate secondary machines for all
//  buckets for which it has been designated as primary." (Adam 3.3.3)
static void send_pulses(struct replica *r) {
    for (uint32_t i = 0; i < r->other_count; i++) {
        const struct replica_message m = {
            .kind = REPLICA_PULSE, .from = r->options.member, .to = r->others[i]};
        r->host->send(r->host->self, &m);
    }
}

void replica_tick(struct replica *r, uint64_t now) {
    if (now < r->deadline)
        return;
    r->deadline = now + r->options.pulse;
    if (now < r->lease)
        send_pulses(r);
    for (uint32_t b = 0; b < r->options.buckets; b++) {
        struct bucket *bucket = &r->buckets[b];
        if (bucket->role == REPLICA_PRIMARY)
            for (struct shard *s = shard_first(r, bucket); s; s = shard_next(r, s))
                round_tick(r, s, now);
        bucket_tick(r, bucket, now);
    }
}

// --- reading ------------------------------------------------------------------------------

uint64_t replica_deadline(const struct replica *r) {
    return r->deadline;
}

uint64_t replica_version(const struct replica *r, uint32_t shard) {
    return r->shards[shard].committed;
}

bool replica_has_replicated(const struct replica *r, uint32_t shard, uint64_t version) {
    return r->shards[shard].open && r->shards[shard].committed >= version;
}

struct replica_bucket replica_bucket(const struct replica *r, uint32_t bucket) {
    const struct bucket *b = &r->buckets[bucket];
    struct replica_bucket view = {.place = b->place, .role = b->role};
    for (uint32_t i = b->first; i != PROTO_NOBODY; i = r->shards[i].next) {
        view.shards++;
        view.behind += b->role == REPLICA_PRIMARY && r->shards[i].round.pending;
    }
    return view;
}

struct replica_stamp replica_stamp(const struct replica *r, uint32_t shard) {
    const struct shard *s = &r->shards[shard];
    if (s->changed)
        return (struct replica_stamp){r->buckets[s->bucket].place.epoch, s->live};
    return shard_top(s);
}
