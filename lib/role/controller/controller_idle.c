// When nothing is trained although there is work: since when, and what each worker waits for.
#include <math.h>
#include <stdlib.h>

#include "cluster/figures.h"
#include "core/clock.h"
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
static bool is_computing(const struct controller *c, const struct cluster_member *member) {
    const struct vital *vital = vitals_of(&c->vitals, member->number);
    return is_worker(member) && vital && !vital->waits_for[0] && !controller_withholds(c, member);
}

static double idle_limit(const struct controller *c) {
    for (size_t i = 0; i < c->cluster->member_count; i++)
        if (is_computing(c, &c->cluster->members[i]))
            return fmax(idle_least, slack * c->longest_gap);
    return idle_least;
}

double controller_idle(const struct controller *c) {
    double idle = clock_seconds() - fmax(c->trained_at, c->stage_began);
    bool works = c->cluster->stage == CLUSTER_TRAINING && !controller_is_finished(c);
    return works && idle >= idle_limit(c) ? idle : 0;
}

// --- words ------------------------------------------------------------------------------------

// The workers, as a list of the metrics.
static json_t *waits_json(const struct proto_status *status) {
    json_t *workers = json_array();
    const struct proto_member *members = status->members.at;
    char wait[FIGURES_WAIT];
    for (uint32_t i = 0; i < status->members.count; i++) {
        const struct proto_member *m = &members[i];
        if (m->role != PROTO_ROLE_WORKER || m->state == PROTO_STATE_GONE)
            continue;
        figures_wait(wait, m);
        json_append(&workers, json_pack("{s:I, s:s%, s:s}", "member", (json_int_t)m->member, "name",
                                        m->name.at, (size_t)m->name.length, "waits_for", wait));
    }
    return workers;
}

// In the log each time, and in the metrics once.
static void say_idle(struct controller *c, double idle) {
    struct proto_status status;
    struct proto_member *members = controller_status(c, &status);
    char *why = members ? figures_idle(&status) : NULL;
    controller_say(c, "nothing was trained for %.0f s: %s", idle, why ? why : "out of memory");
    if (members && c->idle_told == 0)
        controller_report(c, "idle",
                          json_pack("{s:f, s:o}", "seconds", idle, "workers", waits_json(&status)));
    free(why);
    free(members);
}

static void say_idle_over(struct controller *c) {
    double seconds = clock_seconds() - c->idle_since; // nothing may ever have been trained
    if (c->cluster->stage == CLUSTER_TRAINING)
        controller_say(c, "training goes on after %.0f s", seconds);
    controller_report(c, "idle_over", json_pack("{s:f}", "seconds", seconds));
    c->idle_told = 0;
}

void controller_look_for_idleness(struct controller *c) {
    double idle = controller_idle(c);
    if (idle == 0 && c->idle_told > 0)
        say_idle_over(c);
    if (idle == 0 || idle < 2 * c->idle_told)
        return;
    say_idle(c, idle);
    if (c->idle_told == 0)
        c->idle_since = fmax(c->trained_at, c->stage_began);
    c->idle_told = idle;
}
