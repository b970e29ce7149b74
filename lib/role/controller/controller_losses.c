// Parameter servers that are gone, and whose buckets others have: "The controller also instructs
// [...] the new primary" (Adam 3.3.3). Who is the only one with a bucket is no such server
// (controller_stores.c).
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/grow.h"
#include "role/controller/controller_internal.h"

// Its process has most likely died: it hung up, and its lease is over.
static bool has_hung_up(const struct controller *c, const struct cluster_member *member) {
    const struct vital *vital = vitals_of(&c->vitals, member->number);
    double now = c->stepped;
    return vital && vital->closed > 0 && now - vital->closed > CONTROLLER_LEASE / 1000.0 &&
           now > vital->leased;
}

// A server that is gone or hung up, still has places, and can be spared; NULL: none.
static const struct cluster_member *find_gone(const struct controller *c, struct error *err) {
    for (size_t i = 0; i < c->cluster->member_count; i++) {
        const struct cluster_member *member = &c->cluster->members[i];
        bool may = false;
        if (member->role == PROTO_ROLE_PARAMETER_SERVER &&
            (member->gone || has_hung_up(c, member)) &&
            cluster_serves(c->cluster, member->number) &&
            !controller_may_lose(c, member->number, &may, err) && may)
            return member;
    }
    return NULL;
}

// Buckets of which the primary was `before`, and is `now`.
static uint32_t count_inherited(const struct cluster *cluster, const struct cluster *next,
                                uint32_t before, uint32_t now) {
    uint32_t count = 0;
    for (size_t i = 0; i < cluster->place_count; i++)
        count += cluster->places[i].primary == before && next->places[i].primary == now;
    return count;
}

// "ps-2 is the primary of 341 buckets now, ps-3 of 170"; NULL when out of memory.
static char *list_heirs(const struct cluster *cluster, const struct cluster *next,
                        uint32_t before) {
    struct grow text = {0};
    grow_put(&text, "", 0);
    for (size_t i = 0; i < next->member_count; i++) {
        const struct cluster_member *member = &next->members[i];
        uint32_t count = member->number == before || member->role != PROTO_ROLE_PARAMETER_SERVER
                             ? 0
                             : count_inherited(cluster, next, before, member->number);
        if (count)
            grow_format(&text, text.length ? ", %s of %" PRIu32 : "%s is the primary of %" PRIu32,
                        member->name, count);
    }
    bool any = text.length > 0;
    if (any)
        grow_format(&text, " buckets now");
    return grow_take(&text);
}

char *controller_takeovers(const struct cluster *cluster, const struct cluster *next) {
    struct grow text = {0};
    grow_put(&text, "", 0);
    for (size_t i = 0; i < cluster->member_count; i++) {
        const struct cluster_member *member = &cluster->members[i];
        char *heirs = list_heirs(cluster, next, member->number);
        text.failed |= !heirs;
        if (heirs && *heirs)
            grow_format(&text, "%s%s is silent: %s", text.length ? "; " : "", member->name, heirs);
        free(heirs);
    }
    return grow_take(&text);
}

static int lose_one(struct controller *c, uint32_t number, struct error *err) {
    struct cluster *next;
    char name[128];
    int status = controller_draft(c, &next, err);
    if (status)
        return status;
    cluster_lose(next, number);
    char *heirs = list_heirs(c->cluster, next, number);
    status = controller_commit(c, next, controller_fill(c, next, err), err);
    const struct cluster_member *lost = status ? NULL : cluster_numbered(c->cluster, number);
    if (lost) {
        cluster_name(name, lost);
        controller_say(c, "%s %s: %s", name, lost->gone ? "is gone" : "hung up",
                       heirs && *heirs ? heirs : "others have all that it had");
    }
    free(heirs);
    return status;
}

void controller_tell_loss(struct controller *c, const struct cluster_member *member) {
    bool trains = c->cluster->stage > CLUSTER_STARTING && c->cluster->stage < CLUSTER_STOPPING;
    if (member->role == PROTO_ROLE_PARAMETER_SERVER && trains && !member->draining)
        controller_report(
            c, "ps_lost",
            json_pack("{s:I, s:s}", "member", (json_int_t)member->number, "name", member->name));
}

int controller_lose_gone(struct controller *c, struct error *err) {
    const struct cluster_member *member = find_gone(c, err);
    return member ? lose_one(c, member->number, err) : STATUS_OK;
}
