// Members that are silent: which are waited for, which are given up, and what is lost with them.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "role/controller/controller_internal.h"

static void say_why(const struct controller *c, char why[512], const char *name,
                    const struct vital *vital) {
    double silence = c->settings.silence;
    if (vital && vital->closed > 0)
        snprintf(why, 512, "%s vanished: its connection was closed, and it did not come back",
                 name);
    else
        snprintf(why, 512, "%s vanished: nothing was heard of it for %.0f s", name,
                 vital && vital->missed ? fmax(c->settings.server_patience, silence) : silence);
}

// Its loss ends the run, or not.
static int remove_member(const struct controller *c, struct cluster *next,
                         const struct cluster_member *member, const char *why, struct error *err) {
    bool stop = member->role == PROTO_ROLE_WORKER && next->stage == CLUSTER_TRAINING &&
                !strcmp(c->settings.on_peer_loss, "stop");
    cluster_leave(next, member->number);
    int status = stop ? cluster_blame(next, STATUS_UNAVAILABLE, why, err) : STATUS_OK;
    return status || !stop ? status : cluster_enter(next, CLUSTER_DRAINING, err);
}

void controller_tell_broken(struct controller *c, const struct cluster_member *lost) {
    controller_say(c, "replica %" PRIu32 " lacks a partition: its other workers join anew",
                   lost->replica);
}

static int lose_member(struct controller *c, const struct cluster_member *member,
                       struct error *err) {
    struct cluster *next;
    char name[128], why[512];
    const struct cluster_member lost = *member; // who is gone for long may be forgotten at once
    bool broken = cluster_breaks_replica(c->cluster, member);
    cluster_name(name, member);
    say_why(c, why, name, vitals_of(&c->vitals, lost.number));
    int status = controller_draft(c, &next, err);
    if (!status)
        status = remove_member(c, next, member, why, err);
    status = controller_commit(c, next, status, err);
    if (status)
        return status;
    vitals_forget(&c->vitals, lost.number);
    controller_say(c, "%s", why);
    if (broken)
        controller_tell_broken(c, &lost);
    controller_tell_loss(c, &lost);
    return STATUS_OK;
}

// Whom the run waits for when it is silent: who has a part of the weights, of which there is no
// other copy, or of the data.
static bool is_needed(const struct controller *c, const struct cluster_member *member) {
    bool reads = c->cluster->stage < CLUSTER_STOPPING, spared = false;
    if (cluster_serves(c->cluster, member->number))
        return controller_may_lose(c, member->number, &spared, NULL) || !spared;
    return reads && cluster_part_of(c->cluster, member->number);
}

static void miss_member(struct controller *c, const struct cluster_member *member) {
    bool data = member->role == PROTO_ROLE_DATA_SERVER;
    double left = data ? c->settings.data_patience : c->settings.server_patience;
    char name[128], more[64] = "as long as it takes";
    cluster_name(name, member);
    vitals_miss(&c->vitals, member->number);
    if (!data || strcmp(c->settings.on_data_loss, "wait") != 0)
        snprintf(more, sizeof more, "for %.0f s more", fmax(left - c->settings.silence, 0));
    controller_say(c, "%s is silent: nothing was heard of it for %.0f s; waiting for it %s", name,
                   c->settings.silence, more);
}

// A server that is missed for too long, or hung up and does not dial again.
static const struct cluster_member *given_up(const struct controller *c) {
    double now = c->stepped;
    for (size_t i = 0; i < c->cluster->member_count; i++) {
        const struct cluster_member *member = &c->cluster->members[i];
        const struct vital *vital = vitals_of(&c->vitals, member->number);
        if (member->gone || !vital || !cluster_serves(c->cluster, member->number))
            continue;
        bool missed = vital->missed && now - vital->heard > c->settings.server_patience;
        bool hung_up = vital->closed > 0 && now - vital->closed > CONTROLLER_REDIAL / 1000.0;
        if (missed || hung_up)
            return member;
    }
    return NULL;
}

int controller_check_silence(struct controller *c, struct error *err) {
    const struct vital *vital;
    int status = STATUS_OK;
    while (!status && (vital = vitals_silent(&c->vitals, c->settings.silence, c->stepped))) {
        const struct cluster_member *member = cluster_numbered(c->cluster, vital->number);
        if (!member || member->gone)
            vitals_forget(&c->vitals, vital->number);
        else if (is_needed(c, member))
            miss_member(c, member);
        else
            status = lose_member(c, member, err);
    }
    const struct cluster_member *lost = status ? NULL : given_up(c);
    return lost ? lose_member(c, lost, err) : status;
}

// Its part of the weights is nowhere else. Before training began nothing is lost by that: the
// servers that are there then get the first weights anew.
int controller_check_servers(struct controller *c, struct error *err) {
    const struct cluster_member *lost = cluster_lost(c->cluster);
    char name[128], why[2048], latest[512];
    c->lost_since = lost ? c->lost_since : 0;
    if (!lost || c->cluster->stage == CLUSTER_STARTING || c->cluster->stage >= CLUSTER_STOPPING ||
        controller_waits_for_store(c, lost))
        return STATUS_OK;
    cluster_name(name, lost);
    snprintf(why, sizeof why, "%s at %s is gone, and with it its part of the weights; %s %s", name,
             lost->training,
             controller_latest(c, latest)
                 ? "--resume goes on from"
                 : "started again the run begins anew: nothing is saved in",
             latest);
    return controller_end_at_once(c, STATUS_UNAVAILABLE, why, err);
}
