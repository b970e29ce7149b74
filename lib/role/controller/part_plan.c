#include "role/controller/part_plan.h"

#include <stdbool.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "run/checkpoint_tensors.h"

// While it is made.
struct planning {
    const struct proto_routes *routes;
    struct named_parameter *named;
    size_t count;
    uint32_t *order; // tensors, largest first
    uint32_t *owner; // of each tensor: a server, by its place in the routes
    size_t *load;    // of each server: floats to write
    size_t *held;    // the same: floats of one tensor of which it is the primary
    bool *serves;    // the same: whether it is the primary of any bucket
};

static const struct proto_server *server_at(const struct planning *p, uint32_t i) {
    return &((const struct proto_server *)p->routes->servers.at)[i];
}

static const struct proto_bucket *bucket_at(const struct planning *p, uint32_t i) {
    return &((const struct proto_bucket *)p->routes->buckets.at)[i];
}

static uint32_t primary_of(const struct planning *p, uint32_t bucket) {
    uint32_t i = 0;
    while (i < p->routes->servers.count && server_at(p, i)->member != bucket_at(p, bucket)->primary)
        i++;
    return i;
}

// --- order ------------------------------------------------------------------------------

static int larger_first(const void *a, const void *b, void *named) {
    const struct named_parameter *list = named;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    size_t m = list[x].parameter->count, n = list[y].parameter->count;
    return m != n ? (m < n) - (m > n) : (x > y) - (x < y);
}

static int prepare(struct planning *p, const struct model *model, struct error *err) {
    uint32_t servers = p->routes->servers.count;
    int status = named_parameters(&p->named, &p->count, model, NULL, err);
    if (status)
        return status;
    p->order = mem_array(p->count + 1, sizeof *p->order);
    p->owner = mem_array(p->count + 1, sizeof *p->owner);
    p->load = mem_zeroed(servers + 1, sizeof *p->load);
    p->held = mem_zeroed(servers + 1, sizeof *p->held);
    p->serves = mem_zeroed(servers + 1, sizeof *p->serves);
    if (!p->order || !p->owner || !p->load || !p->held || !p->serves)
        return error_nomem(err);
    for (uint32_t i = 0; i < p->count; i++)
        p->order[i] = i;
    qsort_r(p->order, p->count, sizeof *p->order, larger_first, p->named);
    for (uint32_t i = 0; i < p->routes->buckets.count; i++)
        p->serves[primary_of(p, i)] = true;
    return STATUS_OK;
}

// --- choice -----------------------------------------------------------------------------

// What each server has of the tensor.
static void count_held(struct planning *p, const struct parameter *parameter) {
    size_t end = parameter->offset + parameter->count;
    for (uint32_t i = 0; i < p->routes->servers.count; i++)
        p->held[i] = 0;
    for (size_t first = parameter->offset, next; first < end; first = next) {
        size_t shard = first / PROTO_SHARD_FLOATS;
        next = (shard + 1) * PROTO_SHARD_FLOATS < end ? (shard + 1) * PROTO_SHARD_FLOATS : end;
        p->held[primary_of(p, proto_bucket_of((uint32_t)shard, p->routes->buckets.count))] +=
            next - first;
    }
}

static bool is_better(const struct planning *p, uint32_t a, uint32_t b) {
    return p->load[a] != p->load[b] ? p->load[a] < p->load[b] : p->held[a] > p->held[b];
}

static int choose_owners(struct planning *p, struct error *err) {
    uint32_t servers = p->routes->servers.count;
    for (size_t i = 0; i < p->count; i++) {
        const struct parameter *parameter = p->named[p->order[i]].parameter;
        uint32_t best = servers;
        count_held(p, parameter);
        for (uint32_t server = 0; server < servers; server++)
            if (p->serves[server] && (best == servers || is_better(p, server, best)))
                best = server;
        if (best == servers)
            return error_set(err, STATUS_UNAVAILABLE, "no parameter server has the model");
        p->owner[p->order[i]] = best;
        p->load[best] += parameter->count;
    }
    return STATUS_OK;
}

// --- the plan ---------------------------------------------------------------------------

static int add_part(struct part_plan *plan, const struct planning *p, uint32_t server,
                    struct error *err) {
    struct planned_part *part = &plan->parts[plan->count];
    part->server = server_at(p, server);
    part->tensors = mem_array(p->count, sizeof *part->tensors);
    if (!part->tensors)
        return error_nomem(err);
    plan->count++;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->owner[i] == server)
            part->tensors[part->count++] = i;
    return STATUS_OK;
}

static int add_parts(struct part_plan *plan, const struct planning *p, struct error *err) {
    uint32_t servers = p->routes->servers.count;
    int status = STATUS_OK;
    plan->parts = mem_zeroed(servers + 1, sizeof *plan->parts);
    if (!plan->parts)
        return error_nomem(err);
    for (uint32_t i = 0; !status && i < servers; i++)
        if (p->load[i] > 0)
            status = add_part(plan, p, i, err);
    return status;
}

int part_plan_make(struct part_plan *plan, const struct model *model,
                   const struct proto_routes *routes, struct error *err) {
    struct planning p = {.routes = routes};
    *plan = (struct part_plan){0};
    int status = prepare(&p, model, err);
    if (!status)
        status = choose_owners(&p, err);
    if (!status)
        status = add_parts(plan, &p, err);
    if (status)
        part_plan_free(plan);
    named_parameters_free(p.named, p.count);
    free(p.order);
    free(p.owner);
    free(p.load);
    free(p.held);
    free(p.serves);
    return status;
}

void part_plan_free(struct part_plan *plan) {
    for (uint32_t i = 0; i < plan->count; i++)
        free(plan->parts[i].tensors);
    free(plan->parts);
    *plan = (struct part_plan){0};
}
