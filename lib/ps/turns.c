// Which parts make an update, as ps.h says for each protocol.
#include "ps/ps_internal.h"

// --- parts that are over ----------------------------------------------------------------

// A turn that loses a part is no turn any more: they are all made anew.
static void dissolve_turns(struct shard *shard) {
    shard->turns = NULL;
    for (struct part *part = shard->parts; part; part = part->next)
        part->joined = false;
}

static void drop_part(struct ps *ps, struct shard *shard, struct part *part,
                      struct objection objection) {
    parts_remove(shard, part);
    atomic_fetch_add(&ps->counters.dropped, 1);
    atomic_fetch_sub(&ps->counters.queued, 1);
    part_refuse(part, objection);
}

void turns_drop(struct ps *ps, struct shard *shard, enum proto_refusal code) {
    for (struct part *part = shard->parts, *next; part; part = next) {
        next = part->next;
        if (part->state == PART_AGREED)
            drop_part(ps, shard, part, (struct objection){code, part->shard, ""});
    }
    dissolve_turns(shard);
}

static bool is_over(const struct rules *rules, const struct shard *shard, const struct part *part,
                    struct objection *why) {
    if (!atomic_load(&part->request->session->works)) {
        *why = session_over;
        return true;
    }
    if (rules->protocol.kind == PROTOCOL_HARDSYNC &&
        part->version != atomic_load(&shard->version)) {
        *why =
            (struct objection){PROTO_REFUSAL_TOO_STALE, 0, "hardsync: not of the present version"};
        return true;
    }
    return false;
}

static void drop_parts_over(struct ps *ps, struct shard *shard, const struct rules *rules) {
    struct objection why;
    bool dropped = false;
    for (struct part *part = shard->parts, *next; part; part = next) {
        next = part->next;
        if (part->state == PART_AGREED && is_over(rules, shard, part, &why)) {
            drop_part(ps, shard, part, why);
            dropped = true;
        }
    }
    if (dropped)
        dissolve_turns(shard);
}

// --- applying ---------------------------------------------------------------------------

static void count_staleness(struct ps *ps, struct part *part, uint64_t version) {
    part->staleness = version - part->version;
    if (!part->request->samples)
        return;
    counters_staleness(&ps->counters, part->staleness);
    atomic_fetch_add(&ps->counters.floats, part->floats);
}

// Answers a batch whose updates are in the weights.
static void batch_done(struct ps *ps, struct shard *shard, struct part *batch) {
    for (struct part *next; batch; batch = next) {
        next = batch->next;
        histories_mark(&shard->histories, batch->request->session, batch->request->sequence);
        atomic_store(&batch->request->applied, true);
        atomic_fetch_sub(&ps->counters.queued, 1);
        request_part_done(batch);
    }
}

static bool gradients_wait(const struct shard *shard) {
    const struct part *part = shard->parts;
    while (part && !(part->state == PART_AGREED && part->request->samples))
        part = part->next;
    return part;
}

// Takes parts that need not wait out of the shard, as a batch.
static struct part *take_loose(struct shard *shard, enum protocol_kind kind) {
    struct part *batch = NULL, **end = &batch;
    bool joined = false, waiting = gradients_wait(shard);
    for (struct part *part = shard->parts, *next; part; part = next) {
        next = part->next;
        bool alone = kind == PROTOCOL_ASYNC || part->request->kind == REQUEST_DELTA ||
                     (kind == PROTOCOL_SOFTSYNC && !part->request->samples && !waiting);
        if (part->state == PART_AGREED && alone) {
            parts_remove(shard, part);
            *end = part;
            end = &part->next;
            joined = joined || part->joined;
        }
    }
    if (joined) // under the protocol that was
        dissolve_turns(shard);
    return batch;
}

// One after the other, "opportunistically batch[ed]" (Adam 3.3.1).
static void apply_loose(const struct applier *applier, uint32_t index, const struct rules *rules) {
    struct ps *ps = applier->ps;
    struct shard *shard = &ps->shards[index];
    struct part *batch = take_loose(shard, rules->protocol.kind);
    if (!batch)
        return;
    uint64_t before = atomic_load(&shard->version), version = before;
    for (struct part *part = batch; part; part = part->next) {
        count_staleness(ps, part, version);
        part->rate = part->request->rate * protocol_factor(&rules->protocol, part->staleness);
        part->version = version += part->request->samples != 0;
    }
    apply_each(applier, index, &rules->optimizer, batch);
    atomic_store(&shard->version, version);
    atomic_fetch_add(&ps->counters.updates, version - before);
    batch_done(ps, shard, batch);
}

// --- turns ------------------------------------------------------------------------------

static bool fits_turn(const struct part *turn, const struct part *part) {
    if (turn->request->session != part->request->session)
        return false;
    for (const struct part *p = turn; p; p = p->more)
        if (parts_overlap(p, part))
            return false;
    return true;
}

// Into the first turn of its session that does not cover it, or a new one.
static void join_turn(struct shard *shard, struct part *part) {
    struct part **turn = &shard->turns;
    while (*turn && !fits_turn(*turn, part))
        turn = &(*turn)->turn;
    part->joined = true;
    part->more = NULL;
    if (*turn) {
        (*turn)->last->more = part;
        (*turn)->last = part;
        (*turn)->covered += part->floats;
    } else {
        part->turn = NULL;
        part->last = part;
        part->covered = part->floats;
        *turn = part;
    }
}

static void join_agreed_parts(struct shard *shard) {
    for (struct part *part = shard->parts; part; part = part->next)
        if (part->state == PART_AGREED && !part->joined)
            join_turn(shard, part);
}

static uint32_t count_complete(const struct part *turns, size_t floats) {
    uint32_t complete = 0;
    for (; turns; turns = turns->turn)
        complete += turns->covered == floats;
    return complete;
}

struct mean {       // of turns
    double samples; // of all
    double weight;  // of all: samples x factor
    double rate;    // sum of samples x factor x rate
};

// Takes a turn out of the shard and appends its parts to the batch. The turn's samples and
// staleness are the most that a message of it has.
static struct part **move_turn_to_batch(struct ps *ps, struct shard *shard,
                                        const struct protocol *protocol, struct part *turn,
                                        struct part **end, struct mean *mean) {
    uint64_t version = atomic_load(&shard->version), staleness = 0;
    uint32_t samples = 0;
    for (struct part *part = turn; part; part = part->more) {
        count_staleness(ps, part, version);
        staleness = part->staleness > staleness ? part->staleness : staleness;
        samples = part->request->samples > samples ? part->request->samples : samples;
    }
    double weight = samples * protocol_factor(protocol, staleness);
    mean->samples += samples;
    mean->weight += weight;
    mean->rate += weight * turn->request->rate;
    for (struct part *part = turn; part; part = part->more) {
        parts_remove(shard, part);
        part->weight = weight;
        *end = part;
        end = &part->next;
    }
    return end;
}

// The first `count` complete turns, or all of them, out of the shard.
static struct part *take_turns(struct ps *ps, struct shard *shard, const struct protocol *protocol,
                               size_t floats, uint32_t count, struct mean *mean) {
    struct part *batch = NULL, **end = &batch, **turn = &shard->turns;
    while (*turn && count) {
        struct part *taken = *turn;
        if (taken->covered != floats) {
            turn = &taken->turn;
            continue;
        }
        *turn = taken->turn;
        end = move_turn_to_batch(ps, shard, protocol, taken, end, mean);
        count--;
    }
    return batch;
}

// One update by the mean of so many turns.
static void apply_turns(const struct applier *applier, uint32_t index, const struct rules *rules,
                        uint32_t count) {
    struct ps *ps = applier->ps;
    struct shard *shard = &ps->shards[index];
    const struct protocol *protocol = &rules->protocol;
    struct mean mean = {0};
    struct part *batch = take_turns(ps, shard, protocol, shard_floats(ps, index), count, &mean);
    uint64_t version = atomic_load(&shard->version) + 1;
    for (struct part *part = batch; part; part = part->next) {
        part->weight = mean.weight > 0 ? part->weight / mean.weight : 0;
        part->version = version;
    }
    if (mean.samples > 0)
        apply_mean(applier, index, &rules->optimizer, batch,
                   mean.rate / mean.samples *
                       protocol_update_factor(protocol, (uint64_t)mean.samples));
    atomic_store(&shard->version, version);
    atomic_fetch_add(&ps->counters.updates, 1);
    batch_done(ps, shard, batch);
}

void turns_advance(const struct applier *applier, uint32_t index) {
    struct ps *ps = applier->ps;
    struct shard *shard = &ps->shards[index];
    const struct rules *rules = atomic_load(&ps->rules);
    uint32_t workers = atomic_load(&ps->members.working); // before sessions are looked at
    drop_parts_over(ps, shard, rules);
    apply_loose(applier, index, rules);
    if (rules->protocol.kind == PROTOCOL_ASYNC || !shard->parts)
        return;
    join_agreed_parts(shard);
    uint32_t needed = protocol_turns(&rules->protocol, workers);
    while (count_complete(shard->turns, shard_floats(ps, index)) >= needed)
        apply_turns(applier, index, rules, needed);
}
