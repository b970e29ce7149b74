// Copies of shards and back, by the thread that has the shard: so a copy is of one moment, between
// two updates, and the histories of pushes in it are exactly as old as its weights.
#include <string.h>

#include "ps/ps_internal.h"

static const struct objection fine = {PROTO_REFUSAL_NONE, 0, ""};

// --- taking -----------------------------------------------------------------------------

static void pack_blocks(const struct ps *ps, const struct ps_snapshot *snapshot) {
    size_t begin = shard_begin(snapshot->shard), packed = 0;
    uint64_t blocks = snapshot->blocks & blocks_of(snapshot->floats);
    while (blocks) {
        struct blocks_run run = blocks_next(&blocks, snapshot->floats);
        size_t n = run.end - run.begin;
        memcpy(snapshot->weights + packed, ps->weights + begin + run.begin, n * sizeof(float));
        for (int i = 0; i < ps->states; i++)
            memcpy(snapshot->states[i] + packed, ps_state(ps, i) + begin + run.begin,
                   n * sizeof(float));
        packed += n;
    }
}

// Sessions that are over push nothing any more.
static void drop_sessions_over(const struct ps *ps, struct ps_snapshot *snapshot) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < snapshot->push_count; i++) {
        const struct session *session = members_find(&ps->members, snapshot->pushes[i].session);
        if (!session || atomic_load(&session->works))
            snapshot->pushes[n++] = snapshot->pushes[i];
    }
    snapshot->push_count = n;
}

static struct objection take_snapshot(const struct ps *ps, struct shard *shard,
                                      struct ps_snapshot *snapshot) {
    snapshot->version = 0;
    if (!atomic_load(&shard->ready))
        return (struct objection){PROTO_REFUSAL_NOT_READY, PS_AGAIN, ""};
    if (!histories_copy(&shard->histories, &snapshot->pushes, &snapshot->push_count,
                        &snapshot->push_room))
        return (struct objection){PROTO_REFUSAL_BUSY, PS_AGAIN, "out of memory"};
    drop_sessions_over(ps, snapshot);
    if (snapshot->changes) {
        snapshot->changed = shard->dirty;
        snapshot->blocks |= shard->dirty;
        shard->dirty = 0;
    }
    snapshot->epoch = atomic_load(&shard->changed);
    snapshot->version = atomic_load(&shard->version);
    snapshot->floats = (uint32_t)shard_floats(ps, snapshot->shard);
    pack_blocks(ps, snapshot);
    return fine;
}

// --- putting back -----------------------------------------------------------------------

static struct objection put_snapshot(const struct ps *ps, struct shard *shard,
                                     const struct ps_snapshot *snapshot) {
    if (!histories_restore(&shard->histories, snapshot->pushes, snapshot->push_count))
        return (struct objection){PROTO_REFUSAL_BUSY, PS_AGAIN, "out of memory"};
    apply_snapshot(ps, snapshot);
    bool has = snapshot->version != 0;
    shard->stored = has ? snapshot->floats : 0;
    atomic_store(&shard->changed, snapshot->epoch);
    atomic_store(&shard->version, snapshot->version);
    atomic_store(&shard->ready, has);
    return fine;
}

static bool fits(const struct ps *ps, const struct ps_snapshot *snapshot) {
    return snapshot->floats == shard_floats(ps, snapshot->shard);
}

static bool is_whole(const struct ps_snapshot *snapshot) {
    uint64_t all = blocks_of(snapshot->floats);
    return (snapshot->blocks & all) == all;
}

static struct objection restore_snapshot(const struct ps *ps, struct shard *shard,
                                         const struct ps_snapshot *snapshot) {
    if (!fits(ps, snapshot) || !is_whole(snapshot) || !snapshot->version)
        return (struct objection){PROTO_REFUSAL_WRONG_SHAPE, 0, "no state of this shard"};
    if (atomic_load(&shard->ready))
        return (struct objection){PROTO_REFUSAL_BUSY, PS_AGAIN, "the shard has weights"};
    return put_snapshot(ps, shard, snapshot);
}

// Blocks alone change what is there already.
static struct objection install_snapshot(const struct ps *ps, struct shard *shard,
                                         const struct ps_snapshot *snapshot) {
    bool whole = is_whole(snapshot) || !snapshot->version;
    if (!fits(ps, snapshot) || (!whole && !atomic_load(&shard->ready)))
        return (struct objection){PROTO_REFUSAL_WRONG_SHAPE, 0, "no change of this shard"};
    if (atomic_load(&shard->held))
        return (struct objection){PROTO_REFUSAL_WRONG_ROLE, 0, "this server is its primary"};
    return put_snapshot(ps, shard, snapshot);
}

static struct objection serve_snapshot(const struct ps *ps, struct shard *shard,
                                       const struct request *request) {
    switch (request->kind) {
    case REQUEST_SNAPSHOT:
        return take_snapshot(ps, shard, request->snapshot);
    case REQUEST_RESTORE:
        return restore_snapshot(ps, shard, request->snapshot);
    default:
        return install_snapshot(ps, shard, request->snapshot);
    }
}

void snapshot_serve(struct ps *ps, struct shard *shard, struct subrequest *sub) {
    shard_follow_tenure(ps, shard); // nothing is applied after it that was agreed on before
    sub->objection = serve_snapshot(ps, shard, sub->request);
    sub->version = atomic_load(&shard->version);
    subrequest_done(sub);
}
