// The stages of a run: what it waits for, the jobs of the checkpointer, and when the next stage
// begins.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "role/controller/controller_internal.h"

#define RETRY 5.0  // seconds after which a job that failed is tried again
#define SOON 0.2   // the same for what must not be late
#define GRACE 20.0 // seconds that members have to leave at the end

// --- how far it is ------------------------------------------------------------------------------

// Of the parts of the data, without those that are left out; before there are any, of the data
// servers.
double controller_epoch(const struct controller *c) {
    double sum = 0;
    double n = 0;
    for (size_t i = 0; i < c->cluster->part_count; i++) {
        const struct cluster_part *part = &c->cluster->parts[i];
        sum += part->out ? 0 : c->progress.parts[i].epoch * (double)part->samples;
        n += part->out ? 0 : (double)part->samples;
    }
    for (size_t i = 0; c->cluster->part_count == 0 && i < c->cluster->member_count; i++) {
        const struct cluster_member *m = &c->cluster->members[i];
        const struct vital *vital = vitals_of(&c->vitals, m->number);
        if (m->role == PROTO_ROLE_DATA_SERVER && !m->gone && vital && vital->told) {
            sum += vital->figures.epoch;
            n++;
        }
    }
    return fmax(c->ended, n > 0 ? sum / n : 0);
}

double controller_epochs(const struct controller *c) {
    return (double)settings_last_epoch(&c->settings);
}

bool controller_is_finished(const struct controller *c) {
    bool any = false;
    for (size_t i = 0; i < c->cluster->part_count; i++) {
        const struct cluster_part *part = &c->cluster->parts[i];
        if (!part->out && !controller_part_is_over(c, part))
            return false;
        any |= !part->out;
    }
    return any;
}

// As many as the run wants, and as each bucket wants copies.
static size_t servers_wanted(const struct controller *c) {
    const struct settings *s = &c->settings;
    return (size_t)(s->servers > s->copies ? s->servers : s->copies);
}

static void wait_for(struct controller *c, enum proto_role role, size_t wanted) {
    size_t there = cluster_count(c->cluster, role);
    if (there < wanted)
        snprintf(c->waits_for, sizeof c->waits_for, "%ss: %zu of %zu have joined",
                 proto_role_name(role), there, wanted);
}

// Before training begins: all of each replica.
static size_t workers_wanted(const struct controller *c) {
    return (size_t)c->settings.workers * c->cluster->partitions;
}

void controller_look_for_waits(struct controller *c) {
    bool starting = c->cluster->stage == CLUSTER_STARTING;
    bool training = c->cluster->stage == CLUSTER_TRAINING;
    c->waits_for[0] = 0;
    if (training)
        wait_for(c, PROTO_ROLE_WORKER, 1);
    if (starting) {
        wait_for(c, PROTO_ROLE_DATA_SERVER, (size_t)c->settings.data_servers);
        wait_for(c, PROTO_ROLE_WORKER, workers_wanted(c));
        wait_for(c, PROTO_ROLE_PARAMETER_SERVER, servers_wanted(c));
        if (!c->waits_for[0])
            controller_waits_for_range(c, c->waits_for);
    }
    if (training && !c->waits_for[0])
        controller_waits_for_data(c, c->waits_for);
    bool absent = c->waits_for[0];
    if (!absent)
        snprintf(c->waits_for, sizeof c->waits_for, "%s", c->trouble);
    if (!c->waits_for[0])
        patience_found(&c->patience);
    else if (patience_lost(&c->patience))
        controller_say(c, "waiting for %s%s%s", c->waits_for,
                       absent ? "; they join with --controller " : "",
                       absent ? doors_address(c->doors, c->config->id) : "");
}

// --- jobs ---------------------------------------------------------------------------------------

static bool begin_job(struct controller *c, const struct checkpointer_job *job) {
    struct checkpointer_job whole = *job;
    if (clock_seconds() < c->retry || checkpointer_busy(c->checkpointer))
        return false;
    whole.skipped = c->cluster->skipped;
    whole.absent = controller_absent(c, &whole.absent_count);
    if (!whole.absent || !checkpointer_begin(c->checkpointer, &whole, c->cluster->settings)) {
        free(whole.absent);
        return false;
    }
    if (job->save) {
        c->saving = c->saves;
        c->saves = NULL;
    }
    return true;
}

// Whether a multiple of `every` epochs lies behind `before`, and not behind `now`.
static bool is_due(double before, double now, double every) {
    return every > 0 && floor(now / every + 1e-9) > floor(before / every + 1e-9);
}

static bool save_is_due(const struct controller *c, double epoch) {
    double epochs, seconds;
    if (settings_checkpoint_every(&c->settings, &epochs, &seconds, NULL))
        return false;
    return is_due(c->saved, epoch, epochs) ||
           (seconds > 0 && clock_seconds() > c->saved_at + seconds);
}

static void look_for_jobs(struct controller *c) {
    double epoch = controller_epoch(c);
    const struct checkpointer_job job = {
        .test = is_due(c->tested, epoch, c->settings.eval_every),
        .save = c->saves || save_is_due(c, epoch),
    };
    if ((job.test || job.save) && begin_job(c, &job)) {
        c->tested = job.test ? epoch : c->tested;
        c->saved = job.save ? epoch : c->saved;
        c->saved_at = job.save ? clock_seconds() : c->saved_at;
    }
}

void controller_answer_saves(struct queued_request **waiting,
                             const struct checkpointer_result *result, const char *why) {
    while (*waiting) {
        struct queued_request *queued = *waiting;
        *waiting = queued->next;
        const struct proto_saved saved = {
            .number = result ? result->clock : 0,
            .bytes = result ? result->bytes : 0,
            .path = proto_text(result ? result->path : ""),
        };
        if (why)
            link_refuse(queued->link, queued->request, PROTO_REFUSAL_STORAGE, 0, why);
        else
            link_answer(queued->link, queued->request, PROTO_TYPE_SAVED, &saved, NULL, NULL);
        queued_request_free(queued);
    }
}

// Who is not ready yet, or not there, is asked again; the run cannot begin or end without.
static int take_failure(struct controller *c, const struct checkpointer_result *result,
                        struct error *err) {
    controller_answer_saves(&c->saving, NULL, result->err.text);
    if (c->cluster->stage >= CLUSTER_STOPPING)
        return STATUS_OK;
    bool absent = result->err.status == STATUS_UNAVAILABLE && !result->hopeless;
    bool needed = result->job.attach || c->cluster->stage == CLUSTER_SAVING;
    if (result->err.status == STATUS_DIVERGED || (needed && !absent))
        return controller_end(c, result->err.status, CLUSTER_STOPPING, result->err.text, err);
    if (needed) {
        snprintf(c->trouble, sizeof c->trouble, "%.*s", (int)sizeof c->trouble - 1,
                 result->err.text);
        c->retry = clock_seconds() + SOON;
        return STATUS_OK;
    }
    controller_say(c, "warning: %s; trying again", result->err.text);
    c->retry = clock_seconds() + RETRY;
    c->tested = result->job.test ? -1 : c->tested;
    c->saved = result->job.save ? -1 : c->saved;
    return STATUS_OK;
}

static int take_skipped(struct controller *c, uint64_t skipped, struct error *err) {
    struct cluster *next;
    int status = controller_draft(c, &next, err);
    if (!status)
        next->skipped = skipped;
    return controller_commit(c, next, status, err);
}

// The first weights went where they belong, unless a server was lost meanwhile.
static int take_attached(struct controller *c, const struct checkpointer_result *result,
                         struct error *err) {
    bool same = result->job.buckets == c->cluster->places->epoch &&
                c->attached_routes == c->cluster->routes_epoch;
    c->attached = !result->job.initialise || same;
    c->epoch_samples = result->samples;
    c->gap = result->gap;
    c->tested = c->saved = fmax(result->epoch, controller_epoch(c));
    c->saved_at = clock_seconds();
    bool anew = result->job.initialise && result->skipped != c->cluster->skipped;
    return anew ? take_skipped(c, result->skipped, err) : STATUS_OK;
}

// Where no test has been better for as many as the run is patient, the epoch in hand is the last.
static int end_without_progress(struct controller *c, const struct best *best, struct error *err) {
    double epochs = floor(controller_epoch(c)) + 1;
    uint64_t patience = (uint64_t)c->settings.patience;
    char lines[64];
    if (patience == 0 || best->worse < patience || c->cluster->stage != CLUSTER_TRAINING ||
        epochs >= controller_epochs(c))
        return STATUS_OK;
    controller_say(c, "%d tests were not better than that of epoch %.4g: epoch %g is the last",
                   (int)best->worse, best->epoch, epochs);
    snprintf(lines, sizeof lines, "last-epoch=%.0f\n", epochs);
    return controller_change(c, lines, err);
}

int controller_take_result(struct controller *c, struct error *err) {
    struct checkpointer_result result;
    int status = STATUS_OK;
    if (!checkpointer_take(c->checkpointer, &result))
        return STATUS_OK;
    if (result.err.status)
        return take_failure(c, &result, err);
    c->trouble[0] = 0;
    c->clock = result.clock;
    controller_answer_saves(&c->saving, &result, NULL);
    if (result.job.attach)
        status = take_attached(c, &result, err);
    if (!status && result.job.test)
        status = end_without_progress(c, &result.best, err);
    if (status)
        return status;
    // Another job may end in this stage: one begun while workers trained, or the attachment of a
    // controller that was started again. None of them has saved the run. And a run that was saved
    // may be stopping already, for another reason.
    bool saved = result.job.last && c->cluster->stage == CLUSTER_SAVING;
    return saved ? controller_enter(c, CLUSTER_STOPPING, err) : STATUS_OK;
}

// --- stages -------------------------------------------------------------------------------------

// The workers that there must be are there, and all servers know of them: under hardsync
// the first update is of all.
static bool workers_are_there(const struct controller *c) {
    const struct cluster *cluster = c->cluster;
    bool all = cluster_count(cluster, PROTO_ROLE_WORKER) >= workers_wanted(c);
    for (size_t i = 0; i < cluster->member_count && c->settings.workers > 0; i++) {
        const struct cluster_member *m = &cluster->members[i];
        const struct vital *vital = vitals_of(&c->vitals, m->number);
        bool counts = m->role == PROTO_ROLE_PARAMETER_SERVER || m->role == PROTO_ROLE_DATA_SERVER;
        if (counts && !m->gone)
            all &= vital && vital->knows_members >= cluster->members_epoch;
    }
    return all;
}

// Also when one that had been given some is gone: the others change what they hold, too.
static int assign_buckets(struct controller *c, struct error *err) {
    struct cluster *next;
    int status = controller_draft(c, &next, err);
    if (!status) {
        next->copies = (uint32_t)c->settings.copies;
        status = cluster_assign(next, err);
    }
    status = controller_commit(c, next, status, err);
    if (!status)
        c->attached = false;
    return status;
}

// What the data servers have now is the data of the run.
static int divide_data(const struct controller *c, struct cluster *next, struct error *err) {
    int status = cluster_divide(next, err);
    for (size_t i = 0; !status && i < next->part_count; i++) {
        const struct vital *vital = vitals_of(&c->vitals, next->parts[i].member);
        if (vital && vital->told)
            cluster_part_told(&next->parts[i].epoch, vital->figures.epoch);
    }
    return status;
}

static int begin_training(struct controller *c, struct error *err) {
    struct cluster *next;
    int status = controller_draft(c, &next, err);
    if (!status)
        status = divide_data(c, next, err);
    if (!status)
        status = cluster_enter(next, CLUSTER_TRAINING, err);
    status = controller_commit(c, next, status, err);
    if (!status)
        controller_tell_gap(c);
    return status;
}

static int stay_starting(struct controller *c, struct error *err) {
    bool ready =
        cluster_count(c->cluster, PROTO_ROLE_PARAMETER_SERVER) >= servers_wanted(c) &&
        cluster_count(c->cluster, PROTO_ROLE_DATA_SERVER) >= (size_t)c->settings.data_servers;
    int status = STATUS_OK;
    if (ready && (c->cluster->routes_epoch == 0 || controller_lacks_servers(c)))
        status = assign_buckets(c, err);
    if (!status)
        status = controller_tell_routes(c, err);
    if (status || !ready)
        return status;
    c->attached &=
        c->attached_routes == c->cluster->routes_epoch; // a data server took another's place
    if (c->attached)
        return workers_are_there(c) && controller_has_data(c) ? begin_training(c, err) : STATUS_OK;
    if (!checkpointer_busy(c->checkpointer) &&
        begin_job(c, &(struct checkpointer_job){
                         .attach = true, .initialise = true, .buckets = c->cluster->places->epoch}))
        c->attached_routes = c->cluster->routes_epoch;
    return STATUS_OK;
}

static int end_warm_start(struct controller *c, struct error *err) {
    struct cluster *next;
    bool over = controller_epoch(c) * (double)c->epoch_samples >= (double)c->settings.warm_start;
    if (c->cluster->warm || !over)
        return STATUS_OK;
    int status = controller_draft(c, &next, err);
    if (!status)
        cluster_warm(next);
    status = controller_commit(c, next, status, err);
    if (!status)
        controller_say(c, "the warm start is over: all workers train");
    return status;
}

static int finish_training(struct controller *c, struct error *err) {
    struct cluster *next;
    int status = controller_draft(c, &next, err);
    if (!status)
        status = cluster_finish(next, err);
    return controller_commit(c, next, status, err);
}

static int stay_training(struct controller *c, struct error *err) {
    int status = end_warm_start(c, err);
    if (status)
        return status;
    controller_account(c);
    if (c->attached && controller_is_finished(c))
        return finish_training(c, err);
    if (c->attached)
        look_for_jobs(c);
    return STATUS_OK;
}

static int stay_draining(struct controller *c, struct error *err) {
    bool all_left = cluster_count(c->cluster, PROTO_ROLE_WORKER) == 0;
    return all_left ? controller_enter(c, CLUSTER_SAVING, err) : STATUS_OK;
}

static int stay_saving(struct controller *c) {
    if (c->attached && !checkpointer_busy(c->checkpointer))
        begin_job(c, &(struct checkpointer_job){
                         .test = c->cluster->finished,
                         .save = true,
                         .done = c->cluster->finished,
                         .last = true,
                     });
    return STATUS_OK;
}

// A silent member is not waited for any more.
static bool has_left(const struct controller *c, const struct cluster_member *member) {
    const struct vital *vital = vitals_of(&c->vitals, member->number);
    return member->gone || (vital && vital->missed);
}

// The controller enters the last stage when all is closed.
static int stay_stopping(struct controller *c) {
    bool empty = true;
    controller_answer_saves(&c->saves, NULL, "the run ends");
    for (size_t i = 0; i < c->cluster->member_count; i++)
        empty &= has_left(c, &c->cluster->members[i]);
    bool late = c->stepped > c->stage_began + GRACE;
    c->all_left = empty || late;
    return STATUS_OK;
}

// A controller that came back asks the data servers anew.
static int attach_again(struct controller *c, struct error *err) {
    int status = controller_tell_routes(c, err);
    bool needed = !c->attached && c->cluster->stage > CLUSTER_STARTING &&
                  c->cluster->stage < CLUSTER_STOPPING;
    if (!status && needed && !checkpointer_busy(c->checkpointer))
        begin_job(c, &(struct checkpointer_job){.attach = true});
    return status;
}

int controller_stay(struct controller *c, struct error *err) {
    if (c->cluster->routes_epoch) {
        int status = attach_again(c, err);
        if (status)
            return status;
    }
    switch (c->cluster->stage) {
    case CLUSTER_STARTING:
        return stay_starting(c, err);
    case CLUSTER_TRAINING:
        return stay_training(c, err);
    case CLUSTER_DRAINING:
        return stay_draining(c, err);
    case CLUSTER_SAVING:
        return stay_saving(c);
    case CLUSTER_STOPPING:
        return stay_stopping(c);
    default:
        return STATUS_OK;
    }
}
