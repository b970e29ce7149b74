// The side of secondaries and joiners: prepares what the primary sends, and installs it when that
// is committed.
#include "replica/replica_internal.h"

void copy_answer(struct replica *r, const struct shard *shard, struct replica_stamp asked) {
    if (!shard->kept)
        return;
    const struct bucket *bucket = &r->buckets[shard->bucket];
    struct replica_message m = message_to(r, shard, REPLICA_PREPARED, bucket->place.primary);
    m.asked = asked;
    m.stamp = shard_top(shard);
    m.committed = shard->stamp;
    r->host->send(r->host->self, &m);
}

void copy_drop(struct replica *r, struct shard *shard) {
    if (shard->held.any)
        r->host->release(r->host->self, shard->held.load);
    shard->held = (struct held){0};
}

void copy_keep(struct replica *r, struct shard *shard, struct replica_stamp stamp,
               struct replica_load *load) {
    shard->kept = false;
    shard->keeping = stamp;
    r->host->keep(r->host->self, shard_number(r, shard), stamp, load);
}

void copy_discard(struct replica *r, struct shard *shard) {
    const struct held held = shard->held;
    copy_drop(r, shard);
    if (!held.any)
        return;
    shard->kept = held.below;
    if (!shard->kept) // the host was told to keep something newer instead
        copy_keep(r, shard, shard->stamp, NULL);
}

void copy_install(struct replica *r, struct shard *shard) {
    const struct held *held = &shard->held;
    if (!held->any)
        return;
    r->host->install(r->host->self, shard_number(r, shard), held->stamp, held->blocks, held->whole,
                     held->load);
    shard->stamp = held->stamp;
    copy_drop(r, shard);
}

static void hold_load(struct replica *r, struct shard *shard, const struct replica_message *m) {
    bool joins = m->whole && bucket_of(r, shard)->role == REPLICA_JOINER;
    bool below = shard->held.any ? shard->held.below : shard->kept;
    r->host->hold(r->host->self, m->load);
    copy_drop(r, shard);
    shard->held = (struct held){
        .any = true,
        .whole = m->whole,
        .below = below,
        .stamp = m->stamp,
        .blocks = m->blocks,
        .load = m->load,
    };
    shard->kept |= m->whole; // what was there before does not matter any more
    if (m->stamp.version == 0)
        return;
    if (is_durable(r)) {
        copy_keep(r, shard, m->stamp, m->load);
    } else if (r->host->keep && joins) {
        copy_install(r, shard); // nobody relies on what it had
        copy_keep(r, shard, m->stamp, NULL);
    }
}

// The values of the base are here: installed, or prepared and by this message committed. What is
// prepared beyond the base is not the primary's, and was never acknowledged.
static bool has_base(struct replica *r, struct shard *shard, struct replica_stamp base) {
    if (shard->held.any && stamp_same(base, shard->held.stamp)) {
        copy_install(r, shard);
        return true;
    }
    if (!stamp_same(base, shard->stamp))
        return false;
    copy_discard(r, shard);
    return true;
}

// In one epoch the primary's stamps only grow: an older one was overtaken on its way.
static bool is_late(const struct shard *shard, const struct replica_message *m) {
    return shard->follows == m->epoch && stamp_older(m->stamp, shard_top(shard));
}

void copy_prepare(struct replica *r, struct shard *shard, const struct replica_message *m) {
    bool changes = m->whole || !stamp_same(m->base, m->stamp);
    if (changes != (m->load != NULL))
        return; // no primary sends that
    if (!is_late(shard, m)) {
        bool here = stamp_same(m->stamp, shard_top(shard));
        bool takes = here || m->whole || has_base(r, shard, m->base);
        if (takes)
            shard->follows = m->epoch;
        if (takes && !here && changes)
            hold_load(r, shard, m);
    }
    copy_answer(r, shard, m->stamp);
}

// "Each secondary checks the lease information of the bucket for a replicated request initiated by
// primary before committing" (Adam 3.3.3): replica_receive has compared epoch and primary.
void copy_commit(struct replica *r, struct shard *shard, const struct replica_message *m) {
    if (shard->held.any && stamp_same(m->stamp, shard->held.stamp))
        copy_install(r, shard);
    copy_answer(r, shard, m->stamp);
}
