// Parameter servers that are to be switched off: their buckets move to others while training goes
// on. "relocates buckets [...] evenly to other active machines" (Adam 3.3.3)
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "role/controller/controller_internal.h"

static bool is_server(const struct cluster_member *member) {
    return member->role == PROTO_ROLE_PARAMETER_SERVER && !member->gone;
}

// The server of this name; NULL with the reason in `why`: there is none, or there are several.
static const struct cluster_member *find_server(const struct cluster *cluster, const char *name,
                                                char why[512]) {
    const struct cluster_member *found = NULL;
    uint32_t count = 0;
    for (size_t i = 0; i < cluster->member_count; i++)
        if (is_server(&cluster->members[i]) && !strcmp(cluster->members[i].name, name)) {
            found = &cluster->members[i];
            count++;
        }
    if (count == 0)
        snprintf(why, 512, "no parameter server is called %s", name);
    else if (count > 1)
        snprintf(why, 512, "%" PRIu32 " parameter servers are called %s: give each a --name", count,
                 name);
    return count == 1 ? found : NULL;
}

// Those that stay, when this one does not.
static uint32_t count_others(const struct cluster *cluster, const struct cluster_member *server) {
    uint32_t others = 0;
    for (size_t i = 0; i < cluster->member_count; i++) {
        const struct cluster_member *member = &cluster->members[i];
        others += is_server(member) && !member->draining && member->number != server->number;
    }
    return others;
}

static enum proto_refusal check_others(const struct cluster *cluster,
                                       const struct cluster_member *server, char why[512]) {
    uint32_t others = count_others(cluster, server), copies = cluster->copies;
    if (others >= copies)
        return PROTO_REFUSAL_NONE;
    if (copies == 1)
        snprintf(why, 512, "no other server can take the buckets of %s: start one first",
                 server->name);
    else
        snprintf(why, 512,
                 "no other server can take the buckets of %s: each is to be on %" PRIu32
                 " servers, and %" PRIu32 " would be left; start one first",
                 server->name, copies, others);
    return PROTO_REFUSAL_BUSY;
}

// Whether the newest server of this name was drained, and has left.
static bool has_left(const struct cluster *cluster, const char *name) {
    bool left = false;
    for (size_t i = 0; i < cluster->member_count; i++) {
        const struct cluster_member *member = &cluster->members[i];
        if (member->role == PROTO_ROLE_PARAMETER_SERVER && !strcmp(member->name, name))
            left = member->left;
    }
    return left;
}

// *server: NULL where nothing is left to be done.
static enum proto_refusal check_drain(const struct controller *c, const char *name,
                                      const struct cluster_member **server, char why[512]) {
    enum cluster_stage stage = c->cluster->stage;
    *server = find_server(c->cluster, name, why);
    if (!*server)
        return has_left(c->cluster, name) ? PROTO_REFUSAL_NONE : PROTO_REFUSAL_NOT_HERE;
    if (stage == CLUSTER_STARTING || stage >= CLUSTER_STOPPING) {
        snprintf(why, 512, "buckets move while a run trains; this one is %s",
                 cluster_stage_name(stage));
        return PROTO_REFUSAL_NOT_READY;
    }
    return (*server)->draining ? PROTO_REFUSAL_NONE : check_others(c->cluster, *server, why);
}

static uint32_t count_buckets(const struct cluster *cluster, uint32_t server) {
    uint32_t count = 0;
    for (size_t i = 0; i < cluster->place_count; i++) {
        const struct proto_place *place = &cluster->places[i];
        count += place->primary == server || place->second == server || place->third == server;
    }
    return count;
}

static void report_drain(struct controller *c, const char *event,
                         const struct cluster_member *server, uint32_t buckets) {
    controller_report(c, event,
                      json_pack("{s:I, s:s, s:I}", "member", (json_int_t)server->number, "name",
                                server->name, "buckets", (json_int_t)buckets));
}

static int begin_drain(struct controller *c, uint32_t number, struct error *err) {
    struct cluster *next;
    char name[128];
    int status = controller_draft(c, &next, err);
    if (!status)
        status = cluster_drain(next, number, err);
    if (!status)
        next->order++; // for the one to leave
    status = controller_commit(c, next, status, err);
    if (status)
        return status;
    const struct cluster_member *server = cluster_numbered(c->cluster, number);
    uint32_t buckets = count_buckets(c->cluster, number);
    c->placed_routes = 0; // they are to be looked at
    cluster_name(name, server);
    controller_say(c, "%s is to be switched off: its %" PRIu32 " buckets move to other servers",
                   name, buckets);
    report_drain(c, "drain", server, buckets);
    return STATUS_OK;
}

int controller_drain(struct controller *c, const char *name, enum proto_refusal *code,
                     char why[512], struct error *err) {
    const struct cluster_member *server;
    *code = check_drain(c, name, &server, why);
    return *code || !server || server->draining ? 0 : begin_drain(c, server->number, err);
}

void controller_look_at_drains(struct controller *c) {
    for (size_t i = 0; i < c->cluster->member_count; i++) {
        const struct cluster_member *member = &c->cluster->members[i];
        const struct vital *vital = vitals_of(&c->vitals, member->number);
        char name[128];
        if (!member->draining || !vital || vital->drained || member->gone ||
            cluster_serves(c->cluster, member->number))
            continue;
        vitals_drained(&c->vitals, member->number);
        cluster_name(name, member);
        controller_say(c, "%s has no bucket any more, and leaves", name);
        report_drain(c, "drained", member, 0);
    }
}
