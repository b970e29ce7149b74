#include "ps/ps_internal.h"

size_t shard_begin(uint32_t shard) {
    return (size_t)shard * PROTO_SHARD_FLOATS;
}

size_t shard_floats(const struct ps *ps, uint32_t shard) {
    size_t rest = ps->parameters - shard_begin(shard);
    return rest < PROTO_SHARD_FLOATS ? rest : PROTO_SHARD_FLOATS;
}

// --- who looks at it --------------------------------------------------------------------

// The first call since all were answered puts the shard among those that are ready.
void shard_call(struct ps *ps, uint32_t shard) {
    struct crew *crew = &ps->crews[shard % (uint32_t)ps->crew_count];
    if (atomic_fetch_add(&ps->shards[shard].calls, 1) == 0) {
        ring_put(&crew->ready, shard); // there is room for each of them once
        gate_open(&crew->gate);
    }
}

void shard_post(struct ps *ps, struct part *part) {
    uint32_t shard = part->shard;
    _Atomic(struct part *) *queue = &ps->shards[shard].queue;
    part->queued = atomic_load(queue);
    while (!atomic_compare_exchange_weak(queue, &part->queued, part))
        ;
    shard_call(ps, shard);
}

// All that is in the queue, the oldest first.
static struct part *take_queue(struct shard *shard) {
    struct part *newest = atomic_exchange(&shard->queue, NULL), *oldest = NULL;
    for (struct part *before; newest; newest = before) {
        before = newest->queued;
        newest->queued = oldest;
        oldest = newest;
    }
    return oldest;
}

// --- lists ------------------------------------------------------------------------------

void parts_add(struct shard *shard, struct part *part) {
    part->next = NULL;
    part->previous = shard->parts_last;
    *(shard->parts_last ? &shard->parts_last->next : &shard->parts) = part;
    shard->parts_last = part;
}

void parts_remove(struct shard *shard, struct part *part) {
    *(part->previous ? &part->previous->next : &shard->parts) = part->next;
    *(part->next ? &part->next->previous : &shard->parts_last) = part->previous;
    part->next = part->previous = NULL;
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

struct objection shard_objection(struct ps *ps, const struct part *part) {
    const struct shard *shard = &ps->shards[part->shard];
    if (atomic_load(&ps->stopping))
        return (struct objection){PROTO_REFUSAL_STOPPING, 0, ""};
    for (uint32_t i = part->first; i < part->first + part->count; i++) {
        struct objection objection = check_route(shard, &part->request->pieces[i]);
        if (objection.code != PROTO_REFUSAL_NONE)
            return objection;
    }
    if (part->request->kind != REQUEST_STORE && !atomic_load(&shard->ready))
        return (struct objection){PROTO_REFUSAL_NOT_READY, PS_AGAIN, ""};
    return (struct objection){PROTO_REFUSAL_NONE, 0, ""};
}

// --- pulls that wait --------------------------------------------------------------------

// A pull's part: done with, or among those that wait.
static void wait_or_end(struct ps *ps, struct shard *shard, struct part *part) {
    const struct request *request = part->request;
    struct objection objection = shard_objection(ps, part);
    if (objection.code != PROTO_REFUSAL_NONE) {
        part_refuse(part, objection);
    } else if (request->session && !atomic_load(&request->session->works)) {
        part_refuse(part, session_over);
    } else if (atomic_load(&shard->version) >= request->least) {
        request_part_done(part);
    } else {
        part->state = PART_WAITS;
        part->next = shard->waiting;
        shard->waiting = part;
    }
}

static void recheck_waiting(struct ps *ps, struct shard *shard) {
    struct part *list = shard->waiting;
    shard->waiting = NULL;
    for (struct part *next; list; list = next) {
        next = list->next;
        wait_or_end(ps, shard, list);
    }
}

// --- pushes and stores ------------------------------------------------------------------

static void store_part(const struct applier *applier, struct shard *shard, struct part *part) {
    const struct request *request = part->request;
    apply_store(applier, part);
    for (uint32_t i = part->first; i < part->first + part->count; i++) {
        const struct proto_piece *piece = &request->pieces[i];
        if (request->part == PROTO_PART_WEIGHT && piece->offset <= shard->stored &&
            piece->offset + (size_t)piece->count > shard->stored)
            shard->stored = piece->offset + (size_t)piece->count;
    }
    atomic_store(&shard->version, part->version);
    if (shard->stored == shard_floats(applier->ps, part->shard))
        atomic_store(&shard->ready, true);
    atomic_store(&part->request->applied, true);
}

// All shards have spoken. What is agreed on stays in the shard, for turns_advance.
static void settle_part(const struct applier *applier, struct shard *shard, struct part *part) {
    bool carried_out = part->request->objection.code == PROTO_REFUSAL_NONE;
    bool stores = part->request->kind == REQUEST_STORE;
    if (part->state == PART_READY && carried_out && !stores && atomic_load(&shard->ready)) {
        part->state = PART_AGREED;
        atomic_fetch_add(&applier->ps->counters.queued, 1);
        return;
    }
    if (part->state == PART_READY) {
        parts_remove(shard, part);
        if (carried_out && stores)
            store_part(applier, shard, part);
        else if (carried_out) // it was taken away while others were asked
            part->objection = (struct objection){PROTO_REFUSAL_NOT_HERE, part->shard, ""};
    }
    part->version = atomic_load(&shard->version);
    request_part_done(part);
}

// The shard agrees or objects. Who is the last of all shards hands the parts back to them.
static void examine_new_part(const struct applier *applier, struct shard *shard,
                             struct part *part) {
    struct request *request = part->request;
    bool repeated = false;
    part->objection = examine_part(applier->ps, shard, part, &repeated);
    part->state = PART_REFUSED;
    if (part->objection.code == PROTO_REFUSAL_NONE && !repeated) {
        part->state = PART_READY;
        parts_add(shard, part);
    }
    if (atomic_fetch_sub(&request->unexamined, 1) > 1)
        return;
    request_decide(request);
    struct part *parts = request->parts;
    uint32_t n = request->part_count;
    if (n == 1)
        settle_part(applier, shard, part);
    for (uint32_t i = 0; n > 1 && i < n; i++)
        shard_post(applier->ps, &parts[i]);
}

// --- the whole --------------------------------------------------------------------------

// The shard was taken away, or given, since somebody looked: it begins anew.
static void follow_tenure(struct ps *ps, struct shard *shard) {
    uint32_t tenure = atomic_load(&shard->tenure);
    if (tenure == shard->seen_tenure)
        return;
    shard->seen_tenure = tenure;
    shard->stored = 0;
    atomic_store(&shard->ready, false);
    atomic_store(&shard->version, 0);
    turns_drop(ps, shard, PROTO_REFUSAL_NOT_HERE);
}

static void serve_queue(const struct applier *applier, uint32_t index) {
    struct ps *ps = applier->ps;
    struct shard *shard = &ps->shards[index];
    follow_tenure(ps, shard);
    struct part *part = take_queue(shard);
    for (struct part *next; part; part = next) {
        next = part->queued;
        if (part->state != PART_NEW)
            settle_part(applier, shard, part);
        else if (part->request->kind == REQUEST_PULL)
            wait_or_end(ps, shard, part);
        else
            examine_new_part(applier, shard, part);
    }
    turns_advance(applier, index);
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
    recheck_waiting(ps, shard);
    histories_free(&shard->histories);
}
