// Which subrequests make an update, as ps.h says for each protocol.
#include "ps/ps_internal.h"

// --- subrequests that are over ----------------------------------------------------------

// When a turn loses a subrequest, all turns are dissolved, and made anew of what is left.
static void dissolve_turns(struct shard *shard) {
    shard->turns = NULL;
    for (struct subrequest *sub = shard->subrequests; sub; sub = sub->next)
        sub->joined = false;
}

static void drop_subrequest(struct ps *ps, struct shard *shard, struct subrequest *sub,
                            struct objection objection) {
    subrequests_remove(shard, sub);
    atomic_fetch_add(&ps->counters.dropped, 1);
    atomic_fetch_sub(&ps->counters.queued, 1);
    subrequest_refuse(sub, objection);
}

void turns_drop(struct ps *ps, struct shard *shard, enum proto_refusal code) {
    for (struct subrequest *sub = shard->subrequests, *next; sub; sub = next) {
        next = sub->next;
        if (sub->state == SUBREQUEST_AGREED)
            drop_subrequest(ps, shard, sub, (struct objection){code, sub->shard, ""});
    }
    dissolve_turns(shard);
}

static bool is_over(const struct rules *rules, const struct shard *shard,
                    const struct subrequest *sub, struct objection *why) {
    if (!atomic_load(&sub->request->session->works)) {
        *why = session_over;
        return true;
    }
    if (rules->protocol.kind == PROTOCOL_HARDSYNC && sub->version != atomic_load(&shard->version)) {
        *why =
            (struct objection){PROTO_REFUSAL_TOO_STALE, 0, "hardsync: not of the present version"};
        return true;
    }
    return false;
}

static void drop_parts_over(struct ps *ps, struct shard *shard, const struct rules *rules) {
    struct objection why;
    bool dropped = false;
    for (struct subrequest *sub = shard->subrequests, *next; sub; sub = next) {
        next = sub->next;
        if (sub->state == SUBREQUEST_AGREED && is_over(rules, shard, sub, &why)) {
            drop_subrequest(ps, shard, sub, why);
            dropped = true;
        }
    }
    if (dropped)
        dissolve_turns(shard);
}

// --- applying ---------------------------------------------------------------------------

static void count_staleness(struct ps *ps, struct subrequest *sub, uint64_t version) {
    sub->staleness = subrequest_behind(&ps->shards[sub->shard], sub, sub->version, version);
    if (!sub->request->samples)
        return;
    counters_staleness(&ps->counters, sub->staleness);
    atomic_fetch_add(&ps->counters.floats, sub->floats);
}

// A batch is in the weights, which have this version now: answers it, now or when all copies have
// it.
static void batch_done(struct ps *ps, uint32_t index, struct subrequest *batch, uint64_t version) {
    struct shard *shard = &ps->shards[index];
    bool changed = version != atomic_load(&shard->version);
    if (changed)
        shard_set_version(shard, version);
    for (struct subrequest *sub = batch; sub; sub = sub->next) {
        histories_mark(&shard->histories, sub->request->session, sub->request->sequence);
        atomic_store(&sub->request->applied, true);
        atomic_fetch_sub(&ps->counters.queued, 1);
        shard_mark_dirty(shard, sub);
    }
    if (changed)
        stage_tell(ps, index);
    for (struct subrequest *next; batch; batch = next) {
        next = batch->next;
        stage_subrequest(ps, shard, batch);
    }
}

static bool gradients_wait(const struct shard *shard) {
    const struct subrequest *sub = shard->subrequests;
    while (sub && !(sub->state == SUBREQUEST_AGREED && sub->request->samples))
        sub = sub->next;
    return sub;
}

// The rule, with as many sharers as have looked at the same weights at most.
static struct optimizer rule_beside(const struct ps *ps, const struct rules *rules) {
    const struct protocol *protocol = &rules->protocol;
    struct optimizer rule = rules->optimizer;
    if (protocol->kind == PROTOCOL_ASYNC)
        rule.sharers = atomic_load(&ps->members.working);
    else if (protocol->kind == PROTOCOL_SOFTSYNC)
        rule.sharers = protocol->n;
    return rule;
}

// Takes subrequests that need not wait out of the shard, as a batch.
static struct subrequest *take_loose(struct shard *shard, enum protocol_kind kind) {
    struct subrequest *batch = NULL, **end = &batch;
    bool joined = false, waiting = gradients_wait(shard);
    for (struct subrequest *sub = shard->subrequests, *next; sub; sub = next) {
        next = sub->next;
        bool alone = kind == PROTOCOL_ASYNC || sub->request->kind == REQUEST_DELTA ||
                     (kind == PROTOCOL_SOFTSYNC && !sub->request->samples && !waiting);
        if (sub->state == SUBREQUEST_AGREED && alone) {
            subrequests_remove(shard, sub);
            *end = sub;
            end = &sub->next;
            joined = joined || sub->joined;
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
    struct subrequest *batch = take_loose(shard, rules->protocol.kind);
    if (!batch)
        return;
    uint64_t before = atomic_load(&shard->version), version = before;
    for (struct subrequest *sub = batch; sub; sub = sub->next) {
        count_staleness(ps, sub, version);
        sub->rate = sub->request->rate * protocol_factor(&rules->protocol, sub->staleness);
        sub->version = version += sub->request->samples != 0;
        if (sub->request->samples)
            replica_steps_push(&shard->steps, sub->request->session, subrequest_place(sub),
                               version);
        sub->step = version - shard->steps.more;
    }
    const struct optimizer rule = rule_beside(ps, rules);
    apply_each(applier, index, &rule, batch);
    atomic_fetch_add(&ps->counters.updates, version - before);
    batch_done(ps, index, batch, version);
}

// --- turns ------------------------------------------------------------------------------

static bool fits_turn(const struct subrequest *turn, const struct subrequest *sub) {
    if (atomic_load(&turn->request->session->replica) !=
        atomic_load(&sub->request->session->replica))
        return false;
    for (const struct subrequest *p = turn; p; p = p->more)
        if (subrequests_overlap(p, sub))
            return false;
    return true;
}

// Into the first turn of its replica that does not cover it, or a new one.
static void join_turn(struct shard *shard, struct subrequest *sub) {
    struct subrequest **turn = &shard->turns;
    while (*turn && !fits_turn(*turn, sub))
        turn = &(*turn)->turn;
    sub->joined = true;
    sub->more = NULL;
    if (*turn) {
        (*turn)->last->more = sub;
        (*turn)->last = sub;
        (*turn)->covered += sub->floats;
    } else {
        sub->turn = NULL;
        sub->last = sub;
        sub->covered = sub->floats;
        *turn = sub;
    }
}

static void join_agreed_subrequests(struct shard *shard) {
    for (struct subrequest *sub = shard->subrequests; sub; sub = sub->next)
        if (sub->state == SUBREQUEST_AGREED && !sub->joined)
            join_turn(shard, sub);
}

static uint32_t count_complete(const struct subrequest *turns, size_t floats) {
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

// Takes a turn out of the shard and appends its subrequests to the batch. The turn's samples and
// staleness are the most that a message of it has.
static struct subrequest **move_turn_to_batch(struct ps *ps, struct shard *shard,
                                              const struct protocol *protocol,
                                              struct subrequest *turn, struct subrequest **end,
                                              struct mean *mean) {
    uint64_t version = atomic_load(&shard->version), staleness = 0;
    uint32_t samples = 0;
    for (struct subrequest *sub = turn; sub; sub = sub->more) {
        count_staleness(ps, sub, version);
        staleness = sub->staleness > staleness ? sub->staleness : staleness;
        samples = sub->request->samples > samples ? sub->request->samples : samples;
    }
    double weight = samples * protocol_factor(protocol, staleness);
    mean->samples += samples;
    mean->weight += weight;
    mean->rate += weight * turn->request->rate;
    for (struct subrequest *sub = turn; sub; sub = sub->more) {
        subrequests_remove(shard, sub);
        sub->weight = weight;
        *end = sub;
        end = &sub->next;
    }
    return end;
}

// The first `count` complete turns, or all of them, out of the shard.
static struct subrequest *take_turns(struct ps *ps, struct shard *shard,
                                     const struct protocol *protocol, size_t floats, uint32_t count,
                                     struct mean *mean) {
    struct subrequest *batch = NULL, **end = &batch, **turn = &shard->turns;
    while (*turn && count) {
        struct subrequest *taken = *turn;
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
    struct subrequest *batch =
        take_turns(ps, shard, protocol, shard_floats(ps, index), count, &mean);
    uint64_t version = atomic_load(&shard->version) + 1;
    for (struct subrequest *sub = batch; sub; sub = sub->next) {
        sub->weight = mean.weight > 0 ? sub->weight / mean.weight : 0;
        sub->version = version;
        sub->step = version - shard->steps.more;
    }
    const struct optimizer rule = rule_beside(ps, rules);
    if (mean.samples > 0)
        apply_mean(applier, index, &rule, batch,
                   mean.rate / mean.samples *
                       protocol_update_factor(protocol, (uint64_t)mean.samples));
    else
        shard->empty++;
    atomic_fetch_add(&ps->counters.updates, 1);
    batch_done(ps, index, batch, version);
}

void turns_advance(const struct applier *applier, uint32_t index) {
    struct ps *ps = applier->ps;
    struct shard *shard = &ps->shards[index];
    const struct rules *rules = atomic_load(&ps->rules);
    uint32_t workers = atomic_load(&ps->members.working); // before sessions are looked at
    drop_parts_over(ps, shard, rules);
    apply_loose(applier, index, rules);
    if (rules->protocol.kind == PROTOCOL_ASYNC || !shard->subrequests)
        return;
    join_agreed_subrequests(shard);
    uint32_t needed = protocol_turns(&rules->protocol, workers);
    while (count_complete(shard->turns, shard_floats(ps, index)) >= needed)
        apply_turns(applier, index, rules, needed);
}
