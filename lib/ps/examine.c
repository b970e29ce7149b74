#include <float.h>
#include <math.h>

#include "kernels/kernels.h"
#include "ps/ps_internal.h"

static const struct objection fine = {PROTO_REFUSAL_NONE, 0, ""};

// --- numbers ----------------------------------------------------------------------------

// What may be stored need only be finite.
static float float_limit(const struct request *request) {
    return request->kind == REQUEST_STORE ? FLT_MAX : PS_LARGEST;
}

// NaN is no number up to any.
static bool is_good(const struct request *request, float magnitude) {
    return magnitude <= float_limit(request);
}

static struct objection refuse_float(const struct request *request, uint64_t begin, uint64_t end) {
    while (begin < end && is_good(request, fabsf(request->floats[begin])))
        begin++;
    return (struct objection){PROTO_REFUSAL_NOT_FINITE, begin,
                              "not finite, or so large that weights would become so"};
}

static float largest_float(const struct ps *ps, const struct request *request, uint64_t begin,
                           uint64_t end) {
    return begin < end ? ps->kernels->largest(request->floats + begin, end - begin) : 0;
}

// The subrequest's own floats of the payload.
static struct objection examine_floats(const struct ps *ps, const struct subrequest *sub) {
    const struct request *request = sub->request;
    uint64_t begin = request->places[sub->first];
    uint64_t end = begin + sub->floats;
    return is_good(request, largest_float(ps, request, begin, end))
               ? fine
               : refuse_float(request, begin, end);
}

// Factors are no part's own: each part looks through an equal share of them.
static struct objection examine_share(const struct ps *ps, struct subrequest *sub) {
    const struct request *request = sub->request;
    const struct factors *factors = &request->factors;
    uint64_t errors = (uint64_t)request->samples * factors->rows;
    uint64_t all = errors + (uint64_t)request->samples * factors->columns;
    uint64_t index = (uint64_t)(sub - request->subrequests), n = request->subrequest_count;
    uint64_t begin = all * index / n, end = all * (index + 1) / n;
    uint64_t middle = begin > errors ? begin : end < errors ? end : errors;
    sub->error = largest_float(ps, request, begin, middle);
    sub->input = largest_float(ps, request, middle, end);
    return is_good(request, sub->error) && is_good(request, sub->input)
               ? fine
               : refuse_float(request, begin, end);
}

// As optimizer_accepts_product, with a lower bound.
struct objection examine_product(const struct request *request) {
    double error = 0, input = 0;
    for (uint32_t i = 0; i < request->subrequest_count; i++) {
        error = fmax(error, (double)request->subrequests[i].error);
        input = fmax(input, (double)request->subrequests[i].input);
    }
    if (error * (input + 1) * request->samples <= (double)PS_LARGEST)
        return fine;
    return (struct objection){PROTO_REFUSAL_NOT_FINITE, 0,
                              "products of the factors may be too large"};
}

static struct objection examine_numbers(const struct ps *ps, struct subrequest *sub) {
    if (!sub->request->floats || !sub->request->payload->size)
        return fine;
    return sub->request->kind == REQUEST_FACTORS ? examine_share(ps, sub) : examine_floats(ps, sub);
}

// --- rates ------------------------------------------------------------------------------

// A step of weight decay multiplies a weight by 1 - rate x decay: by more than 1, with the
// sign changed, when that product is above 2.
static struct objection examine_rate(const struct ps *ps, const struct rules *rules,
                                     const struct request *request) {
    const struct protocol *protocol = &rules->protocol;
    uint32_t turns = protocol_turns(protocol, atomic_load(&ps->members.working));
    uint64_t all = (uint64_t)request->samples * turns;
    double rate = request->rate * protocol_update_factor(protocol, all);
    if (request->kind == REQUEST_DELTA || request->samples == 0 || rate * rules->decay <= 2)
        return fine;
    return (struct objection){PROTO_REFUSAL_BAD_SETTING, 0,
                              "at this learning rate weight decay makes weights grow"};
}

// --- clocks -----------------------------------------------------------------------------

static struct objection too_stale(uint64_t allowed, const char *text) {
    return (struct objection){PROTO_REFUSAL_TOO_STALE, allowed, text};
}

// A turn without samples changes nothing, however old its weights are, and others wait for it.
static struct objection examine_version(const struct rules *rules, const struct shard *shard,
                                        const struct subrequest *sub) {
    const struct protocol *protocol = &rules->protocol;
    bool hard = protocol->kind == PROTOCOL_HARDSYNC, empty = sub->request->samples == 0;
    uint64_t now = atomic_load(&shard->version), allowed = hard ? 0 : protocol->max_staleness;
    for (uint32_t i = sub->first; i < sub->first + sub->count; i++) {
        uint64_t version = sub->request->pieces[i].version;
        if (version > now)
            return too_stale(allowed, "the shard has never had this version");
        if (hard && version != now)
            return too_stale(0, "hardsync: not of the present version");
        if (allowed && !empty && subrequest_behind(shard, sub, version, now) > allowed)
            return too_stale(allowed, "");
    }
    return fine;
}

// --- exactly once -----------------------------------------------------------------------

bool subrequests_overlap(const struct subrequest *a, const struct subrequest *b) {
    const struct proto_piece *p = a->request->pieces + a->first, *p_end = p + a->count;
    const struct proto_piece *q = b->request->pieces + b->first, *q_end = q + b->count;
    while (p < p_end && q < q_end) {
        if (p->offset + p->count <= q->offset)
            p++;
        else if (q->offset + q->count <= p->offset)
            q++;
        else
            return true;
    }
    return false;
}

// Against what is here and not applied yet.
static struct objection examine_pending(const struct rules *rules, const struct shard *shard,
                                        const struct subrequest *sub) {
    const struct request *request = sub->request;
    for (const struct subrequest *p = shard->subrequests; p; p = p->next) {
        if (p->request->session != request->session || p->request->kind == REQUEST_STORE)
            continue;
        if (p->request->sequence == request->sequence)
            return (struct objection){PROTO_REFUSAL_BUSY, PS_AGAIN, "it is being applied"};
        if (rules->protocol.kind == PROTOCOL_HARDSYNC && subrequests_overlap(p, sub))
            return too_stale(0, "hardsync: this turn is taken");
    }
    return fine;
}

// Steps are counted from the first push that has not all of the shard.
static bool steps_room(const struct ps *ps, struct shard *shard, const struct subrequest *sub) {
    if (!shard->steps.at && sub->floats == shard_floats(ps, sub->shard))
        return true;
    return replica_steps_room(&shard->steps, sub->request->session, subrequest_place(sub));
}

static struct objection examine_sequence(const struct ps *ps, struct shard *shard,
                                         const struct subrequest *sub, bool *repeated) {
    const struct request *request = sub->request;
    uint64_t high;
    if (!histories_room(&shard->histories, request->session) || !steps_room(ps, shard, sub))
        return (struct objection){PROTO_REFUSAL_BUSY, PS_AGAIN, "out of memory"};
    switch (histories_find(&shard->histories, request->session, request->sequence, &high)) {
    case HISTORY_TOO_OLD:
        return (struct objection){PROTO_REFUSAL_REPLAYED, high, ""};
    case HISTORY_APPLIED:
        *repeated = true;
        return fine;
    case HISTORY_NEW:
        break;
    }
    return fine;
}

static struct objection examine_push(struct ps *ps, struct shard *shard, struct subrequest *sub,
                                     bool *repeated) {
    const struct rules *rules = atomic_load(&ps->rules);
    if (sub->request->kind == REQUEST_DELTA && rules->protocol.kind != PROTOCOL_ASYNC)
        return (struct objection){PROTO_REFUSAL_BAD_SETTING, 0,
                                  "deltas need the protocol async; push gradients"};
    if (!atomic_load(&sub->request->session->works))
        return session_over;
    struct objection objection = examine_sequence(ps, shard, sub, repeated);
    if (objection.code == PROTO_REFUSAL_NONE && !*repeated)
        objection = examine_pending(rules, shard, sub);
    if (objection.code == PROTO_REFUSAL_NONE && !*repeated)
        objection = examine_version(rules, shard, sub);
    if (objection.code == PROTO_REFUSAL_NONE && !*repeated)
        objection = examine_rate(ps, rules, sub->request);
    return objection;
}

// Versions of a shard that has copies never go back: they tell the copies apart.
static struct objection examine_store(const struct shard *shard, const struct subrequest *sub) {
    bool copied = atomic_load(&shard->copied) && atomic_load(&shard->ready);
    uint64_t least = copied ? atomic_load(&shard->version) : 1;
    for (uint32_t i = sub->first; i < sub->first + sub->count; i++)
        if (sub->request->pieces[i].version < least)
            return (struct objection){PROTO_REFUSAL_WRONG_SHAPE, i,
                                      copied ? "the shard has a later version"
                                             : "versions begin at 1"};
    return fine;
}

struct objection examine_subrequest(struct ps *ps, struct shard *shard, struct subrequest *sub,
                                    bool *repeated) {
    struct objection objection = shard_objection(ps, sub);
    if (objection.code != PROTO_REFUSAL_NONE)
        return objection;
    objection = sub->request->kind == REQUEST_STORE ? examine_store(shard, sub)
                                                    : examine_push(ps, shard, sub, repeated);
    return objection.code == PROTO_REFUSAL_NONE && !*repeated ? examine_numbers(ps, sub)
                                                              : objection;
}
