// Parameter servers that come back with what they had on a disk ("delayed persistence", Adam
// 3.3.2). What they had not written yet is lost: "DNN models are capable of learning even in the
// presence of small amounts of lost updates". That holds where each push counts for itself. Where
// workers share steps (hardsync, softsync) a step that is lost would be waited for.
#include <stdlib.h>

#include "core/mem.h"
#include "role/controller/controller_internal.h"

bool controller_can_return(const struct controller *c, const struct cluster_member *server) {
    struct protocol protocol;
    enum protocol_push push;
    bool trains = c->cluster->stage > CLUSTER_STARTING && c->cluster->stage < CLUSTER_STOPPING;
    return server->stores && trains && !settings_protocol(&c->settings, &protocol, &push, NULL) &&
           protocol.kind == PROTOCOL_ASYNC;
}

bool controller_is_unheard(const void *self, const struct cluster_member *member) {
    const struct controller *c = self;
    const struct vital *vital = vitals_of(&c->vitals, member->number);
    return controller_is_absent(c, member) || !vital->told;
}

// Of a bucket without a member that is there: whether one of them can come back.
static bool bucket_can_return(const struct controller *c, const struct proto_place *place) {
    const uint32_t members[] = {place->primary, place->second, place->third};
    for (int i = 0; i < 3; i++) {
        const struct cluster_member *member =
            members[i] == PROTO_NOBODY ? NULL : cluster_numbered(c->cluster, members[i]);
        if (member && (!member->gone || controller_can_return(c, member)))
            return true;
    }
    return false;
}

static bool all_can_return(const struct controller *c) {
    for (size_t i = 0; i < c->cluster->place_count; i++)
        if (!bucket_can_return(c, &c->cluster->places[i]))
            return false;
    return true;
}

bool controller_waits_for_store(struct controller *c, const struct cluster_member *lost) {
    double now = c->stepped;
    char name[128];
    if (!all_can_return(c))
        return false;
    if (c->lost_since == 0) {
        c->lost_since = now;
        cluster_name(name, lost);
        controller_say(c, "%s is gone, its shards are in its store; waiting for it for %.0f s",
                       name, c->settings.server_patience);
    }
    return now < c->lost_since + c->settings.server_patience;
}

// Whether `other` was heard after the last that was heard of `server`. Two that came to grief at
// once fell silent within a heartbeat.
static bool outlives(const struct controller *c, uint32_t other, uint32_t server) {
    const struct vital *last = vitals_of(&c->vitals, server);
    const struct vital *vital = vitals_of(&c->vitals, other);
    return vital && (!last || vital->heard > last->heard + 2 * CONTROLLER_HEARTBEAT / 1000.0);
}

// Of a bucket of this server: whether another that has it may live, and none is known to.
static bool others_may_live(const struct controller *c, const struct proto_place *place,
                            uint32_t server) {
    const uint32_t members[] = {place->primary, place->second, place->third};
    bool may = false;
    for (int i = 0; i < 3; i++) {
        const struct cluster_member *member = members[i] == PROTO_NOBODY || members[i] == server
                                                  ? NULL
                                                  : cluster_numbered(c->cluster, members[i]);
        if (member && !controller_is_unheard(c, member) && outlives(c, member->number, server))
            return false;
        may |= member && !controller_is_absent(c, member);
    }
    return may;
}

bool controller_knows_others(const struct controller *c, uint32_t server) {
    for (size_t i = 0; i < c->cluster->place_count; i++) {
        const struct proto_place *place = &c->cluster->places[i];
        bool here = place->primary == server || place->second == server || place->third == server;
        if (here && others_may_live(c, place, server))
            return false;
    }
    return true;
}

// Bits of the shards that are told. Those that the model has not are nobody's.
static void mark_held(const struct proto_list *list, bool *has, size_t shards) {
    const struct proto_held *held = list->at;
    for (uint32_t i = 0; i < list->count; i++)
        if (held[i].shard < shards)
            has[held[i].shard] = true;
}

bool *controller_lacks(const struct controller *c, const struct proto_join *join) {
    size_t shards = (c->parameters + PROTO_SHARD_FLOATS - 1) / PROTO_SHARD_FLOATS;
    uint32_t buckets = (uint32_t)c->cluster->place_count;
    bool *has = mem_zeroed(shards + 1, sizeof *has);
    bool *lacks = mem_zeroed(buckets + 1, sizeof *lacks);
    if (!has || !lacks) {
        free(has);
        free(lacks);
        return NULL;
    }
    mark_held(&join->held, has, shards);
    for (size_t i = 0; buckets && i < shards; i++)
        lacks[proto_bucket_of((uint32_t)i, buckets)] |= !has[i];
    free(has);
    return lacks;
}

const struct cluster_member *controller_returning(const struct controller *c,
                                                  const struct proto_join *join, bool *alive) {
    const struct cluster_member *before = cluster_stored(c->cluster, join);
    bool spared = false; // others have all that it had: nothing is lost
    *alive = before && !controller_is_absent(c, before);
    if (!before || controller_can_return(c, before))
        return before;
    return !controller_may_lose(c, before->number, &spared, NULL) && spared ? before : NULL;
}
