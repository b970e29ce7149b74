// The buckets, and the parameter servers that have them: cluster/placement.h on the members.
#include <stdlib.h>

#include "cluster/cluster.h"
#include "core/error.h"
#include "core/mem.h"

static struct placement placement_of(const struct cluster *cluster) {
    return (struct placement){.copies = cluster->copies,
                              .count = (uint32_t)cluster->place_count,
                              .places = cluster->places};
}

// The parameter servers that live, to be freed; NULL when out of memory.
static struct placement_server *list_servers(const struct cluster *cluster, cluster_absent *absent,
                                             const void *self, uint32_t *count) {
    struct placement_server *servers = mem_zeroed(cluster->member_count + 1, sizeof *servers);
    *count = 0;
    for (size_t i = 0; servers && i < cluster->member_count; i++) {
        const struct cluster_member *member = &cluster->members[i];
        if (member->role != PROTO_ROLE_PARAMETER_SERVER || member->gone)
            continue;
        servers[(*count)++] = (struct placement_server){
            .member = member->number,
            .heard = !absent || !absent(self, member),
            .draining = member->draining,
        };
    }
    return servers;
}

// "these shards are hashed into storage buckets that are distributed equally among the
//  parameter server machines" (Adam 3.3.1)
int cluster_assign(struct cluster *cluster, struct error *err) {
    uint32_t count;
    if (!cluster_count(cluster, PROTO_ROLE_PARAMETER_SERVER))
        return error_set(err, STATUS_UNAVAILABLE, "there is no parameter server");
    struct placement_server *servers = list_servers(cluster, NULL, NULL, &count);
    struct proto_place *places = mem_array(CLUSTER_BUCKETS, sizeof *places);
    if (!servers || !places) {
        free(servers), free(places);
        return error_nomem(err);
    }
    free(cluster->places);
    cluster->places = places;
    cluster->place_count = CLUSTER_BUCKETS;
    struct placement placement = placement_of(cluster);
    placement_assign(&placement, servers, count < CLUSTER_BUCKETS ? count : CLUSTER_BUCKETS,
                     ++cluster->routes_epoch);
    free(servers);
    return STATUS_OK;
}

int cluster_succeed(struct cluster *cluster, uint32_t before, uint32_t number, const bool *lacks,
                    cluster_absent *absent, const void *self, struct error *err) {
    uint32_t count;
    struct placement placement = placement_of(cluster);
    struct placement_server *servers = list_servers(cluster, absent, self, &count);
    if (!servers)
        return error_nomem(err);
    if (placement_succeed(&placement, before, number, lacks, servers, count,
                          cluster->routes_epoch + 1))
        cluster->routes_epoch++;
    free(servers);
    const struct cluster_member *member = cluster_numbered(cluster, before);
    bool drains = member && member->draining && cluster_serves(cluster, number);
    cluster_leave(cluster, before);
    return drains ? cluster_drain(cluster, number, err) : STATUS_OK;
}

void cluster_lose(struct cluster *cluster, uint32_t number) {
    struct placement placement = placement_of(cluster);
    if (placement_lose(&placement, number, cluster->routes_epoch + 1))
        cluster->routes_epoch++;
}

int cluster_propose(struct cluster *cluster, const struct proto_proposal *proposal, bool *changed,
                    struct error *err) {
    uint32_t count;
    struct placement placement = placement_of(cluster);
    struct placement_server *servers = list_servers(cluster, NULL, NULL, &count);
    if (!servers)
        return error_nomem(err);
    *changed = placement_propose(&placement, proposal, servers, count, cluster->routes_epoch + 1);
    cluster->routes_epoch += *changed;
    free(servers);
    return STATUS_OK;
}

int cluster_fill(struct cluster *cluster, cluster_absent *absent, const void *self,
                 const struct partings *parted, bool *changed, struct error *err) {
    uint32_t count;
    struct placement placement = placement_of(cluster);
    placement.parted = parted ? parted->items : NULL;
    placement.parted_count = parted ? parted->count : 0;
    struct placement_server *servers = list_servers(cluster, absent, self, &count);
    if (!servers)
        return error_nomem(err);
    *changed = placement_fill(&placement, servers, count, cluster->routes_epoch + 1);
    cluster->routes_epoch += *changed;
    free(servers);
    return STATUS_OK;
}

int cluster_drain(struct cluster *cluster, uint32_t number, struct error *err) {
    for (size_t i = 0; i < cluster->member_count; i++) {
        struct cluster_member *member = &cluster->members[i];
        if (member->number != number || member->role != PROTO_ROLE_PARAMETER_SERVER || member->gone)
            continue;
        member->draining = true;
        return STATUS_OK;
    }
    return error_set(err, STATUS_USAGE, "member %u is no parameter server of this run", number);
}

int cluster_may_lose(const struct cluster *cluster, uint32_t number, cluster_absent *absent,
                     const void *self, bool *may, struct error *err) {
    uint32_t count;
    const struct placement placement = placement_of(cluster);
    struct placement_server *servers = list_servers(cluster, absent, self, &count);
    if (!servers)
        return error_nomem(err);
    *may = placement_may_lose(&placement, number, servers, count);
    free(servers);
    return STATUS_OK;
}

// Of those that may be gone, too: who is absent is for the caller to tell.
static bool *list_held(const struct cluster *cluster, cluster_absent *absent, const void *self) {
    bool *held = mem_zeroed(cluster->member_count + 1, sizeof *held);
    for (size_t i = 0; held && i < cluster->member_count; i++)
        held[i] = cluster_serves(cluster, cluster->members[i].number) &&
                  !absent(self, &cluster->members[i]);
    return held;
}

static bool is_one(const struct cluster *cluster, const bool *among, uint32_t number) {
    for (size_t i = 0; i < cluster->member_count; i++)
        if (among[i] && cluster->members[i].number == number)
            return true;
    return false;
}

int cluster_is_held(const struct cluster *cluster, cluster_absent *absent, const void *self,
                    bool *held, struct error *err) {
    bool *present = list_held(cluster, absent, self);
    if (!present)
        return error_nomem(err);
    *held = true;
    for (size_t i = 0; i < cluster->place_count; i++) {
        const struct proto_place *place = &cluster->places[i];
        *held &= is_one(cluster, present, place->primary) ||
                 is_one(cluster, present, place->second) || is_one(cluster, present, place->third);
    }
    free(present);
    return STATUS_OK;
}

static bool is_there(const struct cluster *cluster, uint32_t number) {
    const struct cluster_member *member =
        number == PROTO_NOBODY ? NULL : cluster_numbered(cluster, number);
    return member && !member->gone;
}

const struct cluster_member *cluster_lost(const struct cluster *cluster) {
    for (size_t i = 0; i < cluster->place_count; i++) {
        const struct proto_place *place = &cluster->places[i];
        if (!is_there(cluster, place->primary) && !is_there(cluster, place->second) &&
            !is_there(cluster, place->third))
            return cluster_numbered(cluster, place->primary); // the state is checked: there is one
    }
    return NULL;
}

bool cluster_serves(const struct cluster *cluster, uint32_t number) {
    struct placement placement = placement_of(cluster);
    return placement_has(&placement, number);
}

size_t cluster_buckets(const struct cluster *cluster, struct proto_bucket *buckets) {
    for (size_t i = 0; i < cluster->place_count; i++)
        buckets[i] = (struct proto_bucket){
            .epoch = cluster->places[i].epoch,
            .primary = cluster->places[i].primary,
            .second = cluster->places[i].second,
            .third = cluster->places[i].third,
        };
    return cluster->place_count;
}
