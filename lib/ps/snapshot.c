// Copies of shards and back, by the thread that has the shard: so a copy is of one moment, between
// two updates, and the histories of pushes in it are exactly as old as its weights.
#include <string.h>

#include "ps/ps_internal.h"

static bool has_weights(const struct shard *shard) {
    return atomic_load(&shard->ready) || atomic_load(&shard->kept);
}

static struct objection take_snapshot(const struct ps *ps, const struct shard *shard,
                                      struct ps_snapshot *snapshot) {
    size_t begin = shard_begin(snapshot->shard), floats = shard_floats(ps, snapshot->shard);
    if (!has_weights(shard))
        return (struct objection){PROTO_REFUSAL_NOT_READY, PS_AGAIN, ""};
    if (!histories_copy(&shard->histories, &snapshot->pushes, &snapshot->push_count,
                        &snapshot->push_room))
        return (struct objection){PROTO_REFUSAL_BUSY, PS_AGAIN, "out of memory"};
    snapshot->epoch = atomic_load(&shard->changed);
    snapshot->version = atomic_load(&shard->version);
    snapshot->floats = (uint32_t)floats;
    memcpy(snapshot->weights, ps->weights + begin, floats * sizeof(float));
    if (ps->state)
        memcpy(snapshot->state, ps->state + begin, floats * sizeof(float));
    return (struct objection){PROTO_REFUSAL_NONE, 0, ""};
}

static struct objection check_snapshot(const struct ps *ps, const struct shard *shard,
                                       const struct ps_snapshot *snapshot) {
    if (snapshot->floats != shard_floats(ps, snapshot->shard) || !snapshot->version)
        return (struct objection){PROTO_REFUSAL_WRONG_SHAPE, 0, "no state of this shard"};
    if (has_weights(shard))
        return (struct objection){PROTO_REFUSAL_BUSY, PS_AGAIN, "the shard has weights"};
    return (struct objection){PROTO_REFUSAL_NONE, 0, ""};
}

static struct objection restore_snapshot(const struct ps *ps, struct shard *shard,
                                         const struct ps_snapshot *snapshot) {
    struct objection objection = check_snapshot(ps, shard, snapshot);
    if (objection.code != PROTO_REFUSAL_NONE)
        return objection;
    if (!histories_restore(&shard->histories, snapshot->pushes, snapshot->push_count))
        return (struct objection){PROTO_REFUSAL_BUSY, PS_AGAIN, "out of memory"};
    apply_restore(ps, snapshot);
    shard->stored = snapshot->floats;
    atomic_store(&shard->changed, snapshot->epoch);
    atomic_store(&shard->version, snapshot->version);
    bool held = atomic_load(&shard->held);
    shard->restored = !held;
    atomic_store(held ? &shard->ready : &shard->kept, true);
    return objection;
}

void snapshot_serve(struct ps *ps, struct shard *shard, struct subrequest *sub) {
    struct ps_snapshot *snapshot = sub->request->snapshot;
    sub->objection = sub->request->kind == REQUEST_SNAPSHOT ? take_snapshot(ps, shard, snapshot)
                                                            : restore_snapshot(ps, shard, snapshot);
    sub->version = atomic_load(&shard->version);
    subrequest_done(sub);
}
