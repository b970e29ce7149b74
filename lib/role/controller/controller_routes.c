// The routes: which servers there are, and who may know.
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "role/controller/controller_internal.h"

// "whether it may train": during the warm start only the first replica does. "we found that
// ... warm starting model training with only a single model replica before unleashing the
// other replicas" keeps AdaGrad's stability problems away (DistBelief 4.1).
static bool is_chosen(const struct controller *c, const struct cluster_member *member) {
    for (size_t i = 0; i < c->cluster->member_count; i++) {
        const struct cluster_member *m = &c->cluster->members[i];
        if (m->role == PROTO_ROLE_WORKER && !m->gone)
            return m->replica == member->replica;
    }
    return false;
}

bool controller_withholds(const struct controller *c, const struct cluster_member *member) {
    return !c->cluster->warm && member->role == PROTO_ROLE_WORKER && member->number > 0 &&
           !member->gone && !is_chosen(c, member);
}

// Whoever may not read or train yet sees no routes, and waits for them.
uint64_t controller_routes_epoch(const struct controller *c, const struct cluster_member *member) {
    const uint64_t epoch = c->cluster->routes_epoch;
    if (!member || (member->role != PROTO_ROLE_WORKER && member->role != PROTO_ROLE_EVALUATOR))
        return epoch;
    return c->cluster->stage < CLUSTER_TRAINING || controller_withholds(c, member) ? 0 : epoch;
}

// Workers wait for a data server that is away as long as it is listed.
static bool is_listed(const struct cluster *cluster, const struct cluster_member *member,
                      enum proto_role role) {
    const struct cluster_part *part = cluster_part_of(cluster, member->number);
    if (member->role != role || role != PROTO_ROLE_DATA_SERVER || cluster->part_count == 0)
        return member->role == role && !member->gone;
    return part && !part->out;
}

static size_t list_servers(const struct cluster *cluster, enum proto_role role,
                           struct proto_server *servers) {
    size_t n = 0;
    for (size_t i = 0; i < cluster->member_count; i++) {
        const struct cluster_member *m = &cluster->members[i];
        if (is_listed(cluster, m, role))
            servers[n++] = (struct proto_server){
                .member = m->number,
                .training = proto_text(m->training),
                .replication = proto_text(m->replication),
                .administration = proto_text(m->administration),
            };
    }
    return n;
}

int controller_routes(struct controller *c, const struct cluster_member *member,
                      struct kept **routes, struct error *err) {
    struct proto_routes message = {.epoch = controller_routes_epoch(c, member)};
    struct proto_bucket buckets[CLUSTER_BUCKETS];
    struct proto_server *servers = mem_array(2 * c->cluster->member_count + 1, sizeof *servers);
    if (!servers)
        return error_nomem(err);
    if (message.epoch) {
        size_t n = list_servers(c->cluster, PROTO_ROLE_PARAMETER_SERVER, servers);
        size_t m = list_servers(c->cluster, PROTO_ROLE_DATA_SERVER, servers + n);
        message.parameters = c->parameters;
        message.servers = proto_list(servers, (uint32_t)n);
        message.data_servers = proto_list(servers + n, (uint32_t)m);
        message.buckets = proto_list(buckets, (uint32_t)cluster_buckets(c->cluster, buckets));
    }
    int status = kept_make(routes, PROTO_TYPE_ROUTES, &message, err);
    free(servers);
    return status;
}

int controller_tell_routes(struct controller *c, struct error *err) {
    struct kept *routes;
    if (c->told_routes == c->cluster->routes_epoch)
        return STATUS_OK;
    int status = controller_routes(c, NULL, &routes, err);
    if (status)
        return status;
    checkpointer_route(c->checkpointer, routes);
    kept_drop(routes);
    c->told_routes = c->cluster->routes_epoch;
    return STATUS_OK;
}
