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

static void drop_load(struct replica *r, struct shard *shard) {
    if (shard->held.any)
        r->host->release(r->host->self, shard->held.load);
    shard->held = (struct held){0};
}

// What is installed was kept before, unless it is what is to be kept.
void copy_discard(struct replica *r, struct shard *shard) {
    shard->kept |= shard->held.any && stamp_older(shard->stamp, shard->least);
    drop_load(r, shard);
}

void copy_install(struct replica *r, struct shard *shard) {
    const struct held *held = &shard->held;
    if (!held->any)
        return;
    r->host->install(r->host->self, shard_number(r, shard), held->stamp, held->blocks, held->whole,
                     held->load);
    shard->stamp = held->stamp;
    drop_load(r, shard);
}

// What is prepared on top of what is not kept yet is to be kept with it.
static void keep_load(struct replica *r, struct shard *shard, const struct replica_message *m) {
    bool joins = bucket_of(r, shard)->role == REPLICA_JOINER && m->whole;
    if (m->stamp.version > 0 && (is_durable(r) || (r->host->keep && joins))) {
        shard->kept = false;
        shard->least = m->stamp;
    } else if (m->whole) {
        shard->kept = true;
    }
    if (!shard->kept)
        r->host->keep(r->host->self, shard_number(r, shard), m->stamp, m->load);
}

static void hold_load(struct replica *r, struct shard *shard, const struct replica_message *m) {
    r->host->hold(r->host->self, m->load);
    drop_load(r, shard);
    shard->held = (struct held){
        .any = true,
        .whole = m->whole,
        .stamp = m->stamp,
        .blocks = m->blocks,
        .load = m->load,
    };
    keep_load(r, shard, m);
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
