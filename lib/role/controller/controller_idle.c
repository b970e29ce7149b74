// When nothing is trained although there is work: since when, and whom each worker waits for.
#include <math.h>
#include <stdio.h>

#include "core/clock.h"
#include "core/grow.h"
#include "role/controller/controller_internal.h"

static const double idle_least = 10; // seconds until it is said
static const double slack = 3;       // times the longest mini-batch so far, where workers compute

void controller_trained(struct controller *c) {
    double now = clock_seconds(), gap = now - c->trained_at;
    if (c->idle_told == 0 && c->trained_at > 0)
        c->longest_gap = fmax(c->longest_gap, gap);
    c->trained_at = now;
}

static bool is_worker(const struct cluster_member *member) {
    return member->role == PROTO_ROLE_WORKER && !member->gone;
}

// A worker that neither waits nor is silent: it is at a long mini-batch.
static bool computes(const struct controller *c, const struct cluster_member *member) {
    const struct vital *vital = vitals_of(&c->vitals, member->number);
    return is_worker(member) && vital && !vital->waits_for[0] && !controller_withholds(c, member);
}

static double limit(const struct controller *c) {
    for (size_t i = 0; i < c->cluster.member_count; i++)
        if (computes(c, &c->cluster.members[i]))
            return fmax(idle_least, slack * c->longest_gap);
    return idle_least;
}

double controller_idle(const struct controller *c) {
    double idle = clock_seconds() - fmax(c->trained_at, c->stage_began);
    bool works = c->cluster.stage == CLUSTER_TRAINING && !controller_is_finished(c);
    return works && idle >= limit(c) ? idle : 0;
}

// --- words ------------------------------------------------------------------------------------

static const char *wait_of(const struct controller *c, const struct cluster_member *member,
                           char text[64]) {
    const struct vital *vital = vitals_of(&c->vitals, member->number);
    double silent = vital ? clock_seconds() - vital->heard : 0;
    if (controller_withholds(c, member))
        return "the end of the warm start";
    if (silent > 2) {
        snprintf(text, 64, "nothing heard of it for %.0f s", silent);
        return text;
    }
    return vital && vital->waits_for[0] ? vital->waits_for : "it names nobody";
}

static char *describe(const struct controller *c) {
    struct grow text = {0};
    char name[128], room[64];
    size_t workers = 0;
    for (size_t i = 0; i < c->cluster.member_count; i++) {
        const struct cluster_member *member = &c->cluster.members[i];
        if (!is_worker(member))
            continue;
        cluster_name(name, member);
        grow_format(&text, "%s%s: %s", workers++ ? "; " : "", name, wait_of(c, member, room));
    }
    if (!workers)
        grow_format(&text, "there is no worker");
    return grow_take(&text);
}

static void report(struct controller *c, double idle) {
    json_t *workers = json_array();
    char room[64];
    for (size_t i = 0; i < c->cluster.member_count; i++) {
        const struct cluster_member *member = &c->cluster.members[i];
        if (is_worker(member))
            json_array_append_new(
                workers, json_pack("{s:I, s:s, s:s}", "member", (json_int_t)member->number, "name",
                                   member->name, "waits_for", wait_of(c, member, room)));
    }
    controller_report(c, "idle", json_pack("{s:f, s:o}", "seconds", idle, "workers", workers));
}

static void say_over(struct controller *c) {
    double seconds = c->trained_at - c->idle_since;
    if (c->cluster.stage == CLUSTER_TRAINING)
        controller_say(c, "training goes on after %.0f s", seconds);
    controller_report(c, "idle_over", json_pack("{s:f}", "seconds", seconds));
    c->idle_told = 0;
}

void controller_look_for_idleness(struct controller *c) {
    double idle = controller_idle(c);
    if (idle == 0 && c->idle_told > 0)
        say_over(c);
    if (idle == 0 || idle < 2 * c->idle_told)
        return;
    char *why = describe(c);
    controller_say(c, "nothing was trained for %.0f s: %s", idle, why ? why : "out of memory");
    free(why);
    if (c->idle_told == 0) {
        c->idle_since = fmax(c->trained_at, c->stage_began);
        report(c, idle);
    }
    c->idle_told = idle;
}
