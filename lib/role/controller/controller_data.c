// The data servers of a run that trains: which of them are away, how long the run waits for them,
// and what it does then. Workers wait for those that the routes name, so this file alone decides
// what belongs to an epoch.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "role/controller/controller_internal.h"

// --- how far they are -------------------------------------------------------------------------

struct progress_part *controller_progress(const struct controller *c,
                                          const struct cluster_part *part) {
    return &c->progress.parts[part - c->cluster->parts];
}

uint64_t controller_samples(const struct controller *c) {
    return c->cluster->part_count ? progress_samples(&c->progress, c->cluster)
                                  : (uint64_t)(controller_epoch(c) * (double)c->epoch_samples);
}

uint64_t controller_unserved(const struct controller *c) {
    uint64_t parts = cluster_samples(c->cluster, false);
    return c->cluster->part_count && c->gap.whole > parts ? c->gap.whole - parts : 0;
}

// Of the data: what is in parts, and what is in none.
static uint64_t all_samples(const struct controller *c) {
    return cluster_samples(c->cluster, false) + controller_unserved(c);
}

double controller_left_out(const struct controller *c) {
    uint64_t all = all_samples(c), out = cluster_samples(c->cluster, true) + controller_unserved(c);
    return all ? (double)out / (double)all : 0;
}

bool controller_is_absent(const void *self, const struct cluster_member *member) {
    const struct controller *c = self;
    const struct vital *vital = vitals_of(&c->vitals, member->number);
    return member->gone || !vital || vital->missed || vital->closed > 0;
}

// A data server that is told late of fewer epochs ends the one that is under way there.
bool controller_part_is_over(const struct controller *c, const struct cluster_part *part) {
    double epochs = controller_epochs(c);
    return controller_progress(c, part)->epoch >= epochs &&
           !vitals_gives(vitals_of(&c->vitals, part->member), epochs);
}

static bool is_missed(const struct controller *c, const struct cluster_part *part) {
    const struct cluster_member *member = cluster_numbered(c->cluster, part->member);
    return !part->out && (!member || controller_is_absent(c, member));
}

struct data_servers_part *controller_absent(const struct controller *c, size_t *count) {
    size_t parts = c->cluster->part_count;
    struct data_servers_part *list = mem_zeroed(parts + 1, sizeof *list);
    struct cluster now = {0}; // with the epochs as they are now
    *count = 0;
    if (list && cluster_copy(&now, c->cluster, NULL)) {
        free(list);
        list = NULL;
    }
    if (list)
        progress_apply(&c->progress, &now);
    for (size_t i = 0; list && i < parts; i++) {
        const struct cluster_part *p = &now.parts[i];
        if (p->out || is_missed(c, p))
            list[(*count)++] = (struct data_servers_part){
                .member = p->member,
                .first = p->first,
                .samples = p->samples,
                .epoch = cluster_part_epoch(&now, p),
                .done = p->epoch,
                .out = p->out,
            };
    }
    cluster_free(&now);
    return list;
}

// --- words ------------------------------------------------------------------------------------

// "data server 2 (n07) at tcp://n07:7002, which has samples 500..999 of 1000"
static void name_part(const struct controller *c, const struct cluster_part *part, char text[512]) {
    const struct cluster_member *member = cluster_numbered(c->cluster, part->member);
    char name[128] = "a data server";
    if (member)
        cluster_name(name, member);
    snprintf(text, 512, "%s%s%s, which has samples %" PRIu64 "..%" PRIu64 " of %" PRIu64, name,
             member ? " at " : "", member ? member->training : "", part->first,
             part->first + part->samples - 1, all_samples(c));
}

bool controller_waits_for_range(const struct controller *c, char text[PROTO_ADDRESS_MAX]) {
    const struct data_servers_gap *gap = &c->gap;
    if (!c->attached || gap->samples == 0)
        return false;
    snprintf(text, PROTO_ADDRESS_MAX,
             "data servers: none has samples %" PRIu64 "..%" PRIu64 " of %" PRIu64
             " (another --range)",
             gap->first, gap->first + gap->samples - 1, gap->whole);
    return true;
}

bool controller_waits_for_data(const struct controller *c, char text[PROTO_ADDRESS_MAX]) {
    char name[512];
    for (size_t i = 0; i < c->cluster->part_count; i++) {
        const struct cluster_part *part = &c->cluster->parts[i];
        if (c->progress.parts[i].missing == 0 || part->out)
            continue;
        name_part(c, part, name);
        snprintf(text, PROTO_ADDRESS_MAX, "%.*s", PROTO_ADDRESS_MAX - 1, name);
        return true;
    }
    return false;
}

void controller_report(struct controller *c, const char *event, json_t *fields) {
    struct error err = {0};
    json_put(&fields, "step", json_integer((json_int_t)c->clock));
    json_put(&fields, "epoch", json_real(controller_epoch(c)));
    json_put(&fields, "samples", json_integer((json_int_t)controller_samples(c)));
    if (metrics_write(c->metrics, event, fields, &err))
        controller_say(c, "warning: %s; the run goes on", err.text);
}

static void report_part(struct controller *c, const char *event, const struct cluster_part *part) {
    double all = (double)all_samples(c);
    controller_report(c, event,
                      json_pack("{s:I, s:I, s:f, s:f}", "first", (json_int_t)part->first, "count",
                                (json_int_t)part->samples, "share", (double)part->samples / all,
                                "part_epoch", controller_progress(c, part)->epoch));
}

// --- a part that is away ----------------------------------------------------------------------

static bool has_other_part(const struct controller *c, const struct cluster_part *part) {
    for (size_t i = 0; i < c->cluster->part_count; i++)
        if (&c->cluster->parts[i] != part && !c->cluster->parts[i].out)
            return true;
    return false;
}

static int leave_out(struct controller *c, const struct cluster_part *part, struct error *err) {
    struct cluster *next;
    uint32_t number = part->member;
    char name[512];
    name_part(c, part, name);
    int status = controller_draft(c, &next, err);
    if (!status)
        cluster_leave_out(next, number);
    status = controller_commit(c, next, status, err);
    if (status)
        return status;
    part = cluster_part_of(c->cluster, number);
    vitals_forget(&c->vitals, number); // it joins anew when it is back
    controller_progress(c, part)->missing = 0;
    controller_say(c, "going on without %s: %.3g%% of each epoch", name,
                   100 * controller_left_out(c));
    report_part(c, "data_lost", part);
    return STATUS_OK;
}

// Where no data server can be asked nothing can be saved: what was saved before is kept.
static int end_without_data(struct controller *c, const struct cluster_part *part,
                            struct error *err) {
    char name[512], why[1024];
    name_part(c, part, name);
    snprintf(why, sizeof why, "waited %.0f s in vain for %s%s; --resume goes on with %s",
             clock_seconds() - controller_progress(c, part)->missing, name,
             c->attached ? "" : ", and nothing could be saved", c->config->folder);
    return controller_end(c, STATUS_UNAVAILABLE, c->attached ? CLUSTER_DRAINING : CLUSTER_STOPPING,
                          why, err);
}

static int give_up(struct controller *c, const struct cluster_part *part, struct error *err) {
    bool goes_on = !strcmp(c->settings.on_data_loss, "continue") && has_other_part(c, part);
    return goes_on ? leave_out(c, part, err) : end_without_data(c, part, err);
}

// Since when nothing was heard of it.
static double missing_since(const struct controller *c, const struct cluster_part *part) {
    const struct vital *vital = vitals_of(&c->vitals, part->member);
    return vital && vital->missed ? vital->heard : c->stepped;
}

// Whether the run needs its data server: to train, or to be saved.
static bool is_wanted(const struct controller *c, const struct cluster_part *part) {
    return !c->attached ||
           (c->cluster->stage == CLUSTER_TRAINING && !controller_part_is_over(c, part));
}

static int look_at_part(struct controller *c, const struct cluster_part *part, struct error *err) {
    double *missing = &controller_progress(c, part)->missing;
    if (!is_missed(c, part) || !is_wanted(c, part)) {
        *missing = 0;
        return STATUS_OK;
    }
    if (*missing == 0)
        *missing = missing_since(c, part);
    bool late = c->stepped - *missing > c->settings.data_patience;
    bool waits = !strcmp(c->settings.on_data_loss, "wait");
    return late && !waits ? give_up(c, part, err) : STATUS_OK;
}

// What was left out of an epoch that the others have ended.
static void report_left_out(struct controller *c, uint32_t epoch) {
    double samples = (double)controller_unserved(c);
    for (size_t i = 0; i < c->cluster->part_count; i++) {
        const struct cluster_part *part = &c->cluster->parts[i];
        double done = c->progress.parts[i].epoch - epoch;
        if (part->out)
            samples += (double)part->samples * (1 - fmin(fmax(done, 0), 1));
    }
    if (samples > 0)
        controller_report(c, "left_out",
                          json_pack("{s:I, s:I, s:f}", "of_epoch", (json_int_t)epoch, "left",
                                    (json_int_t)llround(samples), "share",
                                    samples / (double)all_samples(c)));
}

void controller_account(struct controller *c) {
    double now = controller_epoch(c);
    if (!(c->accounted <= now)) // the first time
        c->accounted = floor(now);
    for (; c->accounted + 1 <= now + 1e-9; c->accounted++)
        report_left_out(c, (uint32_t)c->accounted);
}

int controller_look_at_data(struct controller *c, struct error *err) {
    int status = STATUS_OK;
    for (size_t i = 0; !status && i < c->cluster->part_count; i++)
        if (c->cluster->stage >= CLUSTER_TRAINING && c->cluster->stage < CLUSTER_STOPPING)
            status = look_at_part(c, &c->cluster->parts[i], err);
    return status;
}

// --- samples that no data server has ----------------------------------------------------------

bool controller_has_data(struct controller *c) {
    if (c->gap.samples == 0) {
        c->gap_since = 0;
        return true;
    }
    if (c->gap_since == 0)
        c->gap_since = c->stepped;
    return !strcmp(c->settings.on_data_loss, "continue") &&
           c->stepped - c->gap_since > c->settings.data_patience;
}

void controller_tell_gap(struct controller *c) {
    const struct data_servers_gap *gap = &c->gap;
    double all = (double)all_samples(c);
    if (gap->samples == 0)
        return;
    controller_say(c,
                   "going on without samples that no data server has, from %" PRIu64
                   " on: %.3g%% of each epoch",
                   gap->first, 100 * controller_left_out(c));
    controller_report(c, "data_lost",
                      json_pack("{s:I, s:I, s:f, s:f}", "first", (json_int_t)gap->first, "count",
                                (json_int_t)gap->samples, "share", (double)gap->samples / all,
                                "part_epoch", controller_epoch(c)));
}

// --- a data server that joins -----------------------------------------------------------------

void controller_tell_part(struct controller *c, uint32_t before, uint32_t number, bool back) {
    const struct cluster_part *part = cluster_part_of(c->cluster, number);
    char name[128];
    vitals_forget(&c->vitals, before);
    controller_progress(c, part)->missing = 0;
    cluster_name(name, cluster_numbered(c->cluster, number));
    controller_say(c, "%s has samples %" PRIu64 "..%" PRIu64 " from epoch %" PRIu32 " on", name,
                   part->first, part->first + part->samples - 1,
                   cluster_part_epoch(c->cluster, part));
    if (back)
        report_part(c, "data_back", part);
}
