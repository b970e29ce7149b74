#include "core/clock.h"
#include "core/invariant.h"
#include "ps/ps_internal.h"

size_t shard_begin(uint32_t shard) {
    return (size_t)shard * PROTO_SHARD_FLOATS;
}

size_t shard_floats(const struct ps *ps, uint32_t shard) {
    size_t rest = ps->parameters - shard_begin(shard);
    return rest < PROTO_SHARD_FLOATS ? rest : PROTO_SHARD_FLOATS;
}

void shard_set_version(struct shard *shard, uint64_t version) {
    atomic_store(&shard->changed, atomic_load(&shard->epoch));
    atomic_store(&shard->version, version);
}

void shard_mark_dirty(struct shard *shard, const struct subrequest *sub) {
    const struct proto_piece *piece = &sub->request->pieces[sub->first];
    for (uint32_t i = 0; i < sub->count; i++, piece++)
        shard->dirty |= blocks_touched(piece->offset, piece->count);
}

uint64_t shard_replicated(const struct shard *shard) {
    return atomic_load(atomic_load(&shard->copied) ? &shard->replicated : &shard->version);
}

uint64_t shard_told(const struct ps *ps, const struct shard *shard) {
    uint64_t replicated = shard_replicated(shard);
    bool newest = replicated && !atomic_load(&ps->rules)->replicates;
    return newest ? atomic_load(&shard->version) : replicated;
}

bool shard_outlived(const struct ps *ps, const struct shard *shard) {
    return atomic_load(&shard->leased) && clock_seconds() >= atomic_load(&ps->lease);
}

uint32_t subrequest_place(const struct subrequest *sub) {
    return (uint32_t)sub->request->pieces[sub->first].offset;
}

uint64_t subrequest_behind(const struct shard *shard, const struct subrequest *sub,
                           uint64_t version, uint64_t now) {
    return replica_steps_behind(&shard->steps, sub->request->session, subrequest_place(sub),
                                version, now);
}

// --- who looks at it --------------------------------------------------------------------

// The first call since all were answered puts the shard among those that are ready.
void shard_call(struct ps *ps, uint32_t shard) {
    struct crew *crew = &ps->crews[shard % (uint32_t)ps->crew_count];
    if (atomic_fetch_add(&ps->shards[shard].calls, 1) == 0) {
        bool room = ring_put(&crew->ready, shard); // for each of them once
        INVARIANT(room);
        gate_open(&crew->gate);
    }
}

void shard_post(struct ps *ps, struct subrequest *sub) {
    uint32_t shard = sub->shard;
    _Atomic(struct subrequest *) *queue = &ps->shards[shard].queue;
    sub->queued = atomic_load(queue);
    while (!atomic_compare_exchange_weak(queue, &sub->queued, sub))
        ;
    shard_call(ps, shard);
}

// All that is in the queue, the oldest first.
static struct subrequest *take_queue(struct shard *shard) {
    struct subrequest *newest = atomic_exchange(&shard->queue, NULL), *oldest = NULL;
    for (struct subrequest *before; newest; newest = before) {
        before = newest->queued;
        newest->queued = oldest;
        oldest = newest;
    }
    return oldest;
}

// --- lists ------------------------------------------------------------------------------

static void subrequests_add(struct shard *shard, struct subrequest *sub) {
    sub->next = NULL;
    sub->previous = shard->subrequests_last;
    *(shard->subrequests_last ? &shard->subrequests_last->next : &shard->subrequests) = sub;
    shard->subrequests_last = sub;
}

void subrequests_remove(struct shard *shard, struct subrequest *sub) {
    *(sub->previous ? &sub->previous->next : &shard->subrequests) = sub->next;
    *(sub->next ? &sub->next->previous : &shard->subrequests_last) = sub->previous;
    sub->next = sub->previous = NULL;
}

// --- what it serves ---------------------------------------------------------------------

static struct objection check_route(const struct shard *shard, const struct proto_piece *piece) {
    uint64_t epoch = atomic_load(&shard->epoch);
    if (piece->epoch < epoch)
        return (struct objection){PROTO_REFUSAL_STALE_ROUTE, epoch, ""};
    if (piece->epoch > epoch)
        return (struct objection){PROTO_REFUSAL_BUSY, PS_AGAIN,
                                  "these routes have not come here yet"};
    if (!atomic_load(&shard->held))
        return (struct objection){PROTO_REFUSAL_NOT_HERE, piece->shard, ""};
    return (struct objection){PROTO_REFUSAL_NONE, 0, ""};
}

struct objection shard_objection(struct ps *ps, const struct subrequest *sub) {
    const struct shard *shard = &ps->shards[sub->shard];
    if (atomic_load(&ps->stopping))
        return (struct objection){PROTO_REFUSAL_STOPPING, 0, ""};
    for (uint32_t i = sub->first; i < sub->first + sub->count; i++) {
        struct objection objection = check_route(shard, &sub->request->pieces[i]);
        if (objection.code != PROTO_REFUSAL_NONE)
            return objection;
    }
    if (sub->request->kind != REQUEST_STORE && !atomic_load(&shard->ready))
        return (struct objection){PROTO_REFUSAL_NOT_READY, PS_AGAIN, ""};
    if (shard_outlived(ps, shard))
        return (struct objection){PROTO_REFUSAL_BUSY, PS_AGAIN, "this server has no lease now"};
    if (sub->request->kind == REQUEST_PULL && !shard_told(ps, shard))
        return (struct objection){PROTO_REFUSAL_NOT_READY, PS_AGAIN,
                                  "the copies are brought to one version"};
    return (struct objection){PROTO_REFUSAL_NONE, 0, ""};
}

// --- pulls that wait --------------------------------------------------------------------

// A pull's subrequest: done with, or among those that wait.
static void wait_or_end(struct ps *ps, struct shard *shard, struct subrequest *sub) {
    const struct request *request = sub->request;
    struct objection objection = shard_objection(ps, sub);
    if (objection.code != PROTO_REFUSAL_NONE) {
        subrequest_refuse(sub, objection);
    } else if (request->session && !atomic_load(&request->session->works)) {
        subrequest_refuse(sub, session_over);
    } else if (shard_told(ps, shard) >= request->least) {
        subrequest_done(sub);
    } else {
        sub->state = SUBREQUEST_WAITS;
        sub->next = shard->waiting;
        shard->waiting = sub;
    }
}

static void recheck_waiting(struct ps *ps, struct shard *shard) {
    struct subrequest *list = shard->waiting;
    shard->waiting = NULL;
    for (struct subrequest *next; list; list = next) {
        next = list->next;
        wait_or_end(ps, shard, list);
    }
}

// --- pushes and stores ------------------------------------------------------------------

// A shard that has not all its weights yet has nothing to copy.
static void store_subrequest(const struct applier *applier, struct shard *shard,
                             struct subrequest *sub) {
    struct request *request = sub->request;
    apply_store(sub);
    for (uint32_t i = sub->first; i < sub->first + sub->count; i++) {
        const struct proto_piece *piece = &request->pieces[i];
        if (request->quantity == PROTO_QUANTITY_WEIGHT && piece->offset <= shard->stored &&
            piece->offset + (size_t)piece->count > shard->stored)
            shard->stored = piece->offset + (size_t)piece->count;
    }
    shard_set_version(shard, sub->version);
    shard_mark_dirty(shard, sub);
    atomic_store(&request->applied, true);
    if (shard->stored == shard_floats(applier->ps, sub->shard))
        atomic_store(&shard->ready, true);
    if (!atomic_load(&shard->ready)) {
        subrequest_done(sub);
        return;
    }
    stage_tell(applier->ps, sub->shard);
    stage_subrequest(applier->ps, shard, sub);
}

// All shards have spoken. What is agreed on stays in the shard, for turns_advance.
static void settle_subrequest(const struct applier *applier, struct shard *shard,
                              struct subrequest *sub) {
    bool carried_out = sub->request->objection.code == PROTO_REFUSAL_NONE;
    bool stores = sub->request->kind == REQUEST_STORE;
    if (sub->state == SUBREQUEST_READY && carried_out && !stores && atomic_load(&shard->held)) {
        sub->state = SUBREQUEST_AGREED;
        atomic_fetch_add(&applier->ps->counters.queued, 1);
        return;
    }
    if (sub->state == SUBREQUEST_READY) {
        subrequests_remove(shard, sub);
        if (carried_out && atomic_load(&shard->held)) {
            store_subrequest(applier, shard, sub);
            return;
        }
        if (carried_out) // it was taken away while others were asked
            sub->objection = (struct objection){PROTO_REFUSAL_NOT_HERE, sub->shard, ""};
    }
    sub->version = atomic_load(&shard->version);
    if (carried_out && sub->objection.code == PROTO_REFUSAL_NONE)
        stage_subrequest(applier->ps, shard, sub); // repeated
    else
        subrequest_done(sub);
}

// The shard agrees or objects. Who is the last of all shards hands the subrequests back to them.
static void examine_new_subrequest(const struct applier *applier, struct shard *shard,
                                   struct subrequest *sub) {
    struct request *request = sub->request;
    bool repeated = false;
    sub->objection = examine_subrequest(applier->ps, shard, sub, &repeated);
    sub->state = SUBREQUEST_REFUSED;
    if (sub->objection.code == PROTO_REFUSAL_NONE && !repeated) {
        sub->state = SUBREQUEST_READY;
        subrequests_add(shard, sub);
    }
    if (atomic_fetch_sub(&request->unexamined, 1) > 1)
        return;
    request_decide(request);
    struct subrequest *subrequests = request->subrequests;
    uint32_t n = request->subrequest_count;
    if (n == 1)
        settle_subrequest(applier, shard, sub);
    for (uint32_t i = 0; n > 1 && i < n; i++)
        shard_post(applier->ps, &subrequests[i]);
}

// --- the whole --------------------------------------------------------------------------

// It keeps what it has: "Losing the right to serve a shard does not lose its values." Who gives it
// back has seen to it that these are the newest.
void shard_follow_tenure(struct ps *ps, struct shard *shard) {
    uint32_t tenure = atomic_load(&shard->tenure);
    if (tenure == shard->seen_tenure)
        return;
    shard->seen_tenure = tenure;
    turns_drop(ps, shard, PROTO_REFUSAL_NOT_HERE);
    stage_drop(shard, PROTO_REFUSAL_NOT_HERE);
}

static void serve_queue(const struct applier *applier, uint32_t index) {
    struct ps *ps = applier->ps;
    struct shard *shard = &ps->shards[index];
    shard_follow_tenure(ps, shard);
    struct subrequest *sub = take_queue(shard);
    for (struct subrequest *next; sub; sub = next) {
        next = sub->queued;
        if (sub->state != SUBREQUEST_NEW)
            settle_subrequest(applier, shard, sub);
        else if (sub->request->snapshot)
            snapshot_serve(ps, shard, sub);
        else if (sub->request->kind == REQUEST_PULL)
            wait_or_end(ps, shard, sub);
        else
            examine_new_subrequest(applier, shard, sub);
    }
    turns_advance(applier, index);
    stage_release(ps, shard);
    recheck_waiting(ps, shard);
}

void shard_serve(const struct applier *applier, uint32_t shard) {
    _Atomic uint32_t *calls = &applier->ps->shards[shard].calls;
    uint32_t answered;
    do {
        answered = atomic_load(calls);
        serve_queue(applier, shard);
    } while (atomic_fetch_sub(calls, answered) != answered);
}

void shard_end(struct ps *ps, struct shard *shard) {
    turns_drop(ps, shard, PROTO_REFUSAL_STOPPING);
    stage_drop(shard, PROTO_REFUSAL_STOPPING);
    recheck_waiting(ps, shard);
    histories_free(&shard->histories);
    replica_steps_free(&shard->steps);
}
