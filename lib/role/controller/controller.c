#include "role/controller/controller.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/figures.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "member/place.h"
#include "role/controller/controller_internal.h"

#define TICK 0.1  // seconds between two looks at what is due
#define AGAIN 0.3 // seconds in which a server that waited for an answer asks again
#define AWAY 3.0  // seconds without a look at what is due: it did not run
#define PAGE 1.0  // seconds from one page of /metrics to the next

bool controller_is_alone(const struct controller_config *config) {
    return config->controllers == 1;
}

// Also called by the checkpointer's thread.
static void say_line(void *self, const char *text) {
    doors_say(self, text);
}

void controller_say(struct controller *c, const char *format, ...) {
    char text[ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    doors_say(c->doors, text);
}

int controller_draft(const struct controller *c, struct cluster **next, struct error *err) {
    int status = agreed_draft(&c->agreed, next, err);
    if (!status)
        progress_apply(&c->progress, *next);
    return status;
}

int controller_commit(struct controller *c, struct cluster *next, int status, struct error *err) {
    bool enters = c->cluster && !status && next->stage != c->cluster->stage;
    if (!status)
        status = progress_reserve(&c->progress, next, err);
    status = agreed_commit(&c->agreed, next, status, err);
    if (status)
        return status;
    c->cluster = c->agreed.state;
    c->agreements++;
    progress_follow(&c->progress, c->cluster);
    if (!enters)
        return STATUS_OK;
    if (c->cluster->stage > CLUSTER_TRAINING) // the data servers, who know, will leave
        c->ended = controller_epoch(c);
    c->stage_began = clock_seconds();
    return STATUS_OK;
}

int controller_settle(struct controller *c, const char *text, struct error *err) {
    char *copy = mem_string(text);
    struct settings settings;
    settings_default(&settings);
    int status = copy ? settings_parse(&settings, copy, err) : error_nomem(err);
    if (status) {
        free(copy);
        return status;
    }
    free(c->settings_text);
    c->settings_text = copy;
    c->settings = settings;
    return STATUS_OK;
}

int controller_enter(struct controller *c, enum cluster_stage stage, struct error *err) {
    struct cluster *next;
    int status = controller_draft(c, &next, err);
    if (!status)
        status = cluster_enter(next, stage, err);
    return controller_commit(c, next, status, err);
}

int controller_end(struct controller *c, int status, enum cluster_stage stage, const char *why,
                   struct error *err) {
    struct cluster *next;
    int failed = controller_draft(c, &next, err);
    if (!failed)
        failed = cluster_blame(next, status, why, err);
    if (!failed)
        failed = cluster_enter(next, stage, err);
    failed = controller_commit(c, next, failed, err);
    if (!failed)
        controller_say(c, "%s", status == STATUS_STOPPED ? "stopping" : why);
    return failed;
}

// --- routes -----------------------------------------------------------------------------------

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

// --- members ----------------------------------------------------------------------------------

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

static int check_silence(struct controller *c, struct error *err) {
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

// What the checkpointer waits for ends, too.
static int end_at_once(struct controller *c, int status, const char *why, struct error *err) {
    int failed = controller_end(c, status, CLUSTER_STOPPING, why, err);
    if (!failed)
        checkpointer_stop(c->checkpointer);
    return failed;
}

// Its part of the weights is nowhere else. Before training began nothing is lost by that: the
// servers that are there then get the first weights anew.
static int check_servers(struct controller *c, struct error *err) {
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
    return end_at_once(c, STATUS_UNAVAILABLE, why, err);
}

// --- what is wished -----------------------------------------------------------------------------

static int stop_run(struct controller *c, bool save, struct error *err) {
    char why[512];
    if (!save || c->cluster->stage == CLUSTER_STARTING) {
        snprintf(why, sizeof why, "stopped%s; what was saved before is kept in %s",
                 save ? " before training began" : " at once, without saving", c->config->folder);
        return end_at_once(c, STATUS_STOPPED, why, err);
    }
    snprintf(why, sizeof why, "stopped at epoch %.4g; --resume goes on with %s",
             controller_epoch(c), c->config->folder);
    return controller_end(c, STATUS_STOPPED, CLUSTER_DRAINING, why, err);
}

static int look_for_wishes(struct controller *c, struct error *err) {
    enum trainer_wish wish = c->config->hooks.wish(c->config->hooks.self);
    enum cluster_stage stage = c->cluster->stage;
    if (wish == TRAINER_SAVE && stage == CLUSTER_TRAINING)
        c->saved = -1;
    if (c->stop_now && stage < CLUSTER_STOPPING)
        return stop_run(c, false, err);
    if ((c->stop_wanted || wish == TRAINER_STOP) && stage < CLUSTER_DRAINING)
        return stop_run(c, true, err);
    if (!c->diverged || stage >= CLUSTER_STOPPING)
        return STATUS_OK;
    char why[256];
    snprintf(why, sizeof why,
             "the loss of %s is no longer finite; the last good weights are in the last checkpoint",
             c->diverging);
    return controller_end(c, STATUS_DIVERGED, CLUSTER_STOPPING, why, err);
}

static void show_progress(struct controller *c) {
    if (c->cluster->stage >= CLUSTER_STOPPING)
        return; // those who knew how far it is have left
    struct trainer_progress now = {
        .epoch = controller_epoch(c),
        .epochs = controller_epochs(c),
        .rate = settings_rate(&c->settings),
        .loss = NAN,
        .seconds_left = -1,
        .doing =
            c->cluster->stage == CLUSTER_TRAINING ? NULL : cluster_stage_name(c->cluster->stage),
    };
    double loss = 0, weight = 0;
    size_t workers = 0;
    now.samples = controller_samples(c);
    for (size_t i = 0; i < c->vitals.count; i++) {
        const struct vital *v = &c->vitals.items[i];
        const struct cluster_member *m = cluster_numbered(c->cluster, v->number);
        if (!m || m->role != PROTO_ROLE_WORKER)
            continue;
        workers++;
        now.samples_per_s += v->figures.rate;
        now.waiting += v->figures.waiting;
        loss += isfinite(v->figures.loss) ? v->figures.loss * v->figures.rate : 0;
        weight += isfinite(v->figures.loss) ? v->figures.rate : 0;
    }
    now.loss = weight > 0 ? loss / weight : NAN;
    now.waiting /= workers ? (double)workers : 1;
    double left = (now.epochs - now.epoch) * (double)c->epoch_samples;
    if (now.samples_per_s > 0)
        now.seconds_left = left / now.samples_per_s;
    pthread_mutex_lock(&c->doors->talk);
    c->config->hooks.progress(c->config->hooks.self, &now);
    pthread_mutex_unlock(&c->doors->talk);
}

// Once a second is as often as anybody looks.
static int put_page(struct controller *c, struct error *err) {
    struct proto_status status;
    double now = clock_seconds();
    if (!c->doors->http || now < c->page_due)
        return STATUS_OK;
    struct proto_member *members = controller_status(c, &status);
    if (!members)
        return error_nomem(err);
    http_set(c->doors->http, figures_prometheus(&status));
    free(members);
    c->page_due = now + PAGE;
    return STATUS_OK;
}

// --- life ---------------------------------------------------------------------------------------

static int open_checkpointer(struct controller *c, struct error *err) {
    const struct checkpointer_config config = {
        .folder = c->config->folder,
        .command = c->config->command,
        .resume = c->cluster->resume,
        .model_name = c->cluster->model_name,
        .model = c->cluster->model,
        .run = c->cluster->run,
        .model_hash = c->model_hash,
        .keys = c->config->keys,
        .insecure = c->config->insecure,
        .metrics = c->metrics,
        .gate = &c->doors->gate,
        .self = c->doors,
        .say = say_line,
    };
    return checkpointer_open(&c->checkpointer, &config, err);
}

static int read_model(struct controller *c, struct error *err) {
    struct model *model;
    const struct cluster *cluster = c->cluster;
    int status = model_parse(&model, cluster->model_name, cluster->model, NULL, 0, err);
    if (status)
        return status;
    c->parameters = model->parameter_count;
    c->model_hash = hash_bytes(cluster->model, strlen(cluster->model));
    model_free(model);
    return STATUS_OK;
}

static int open_controller(struct controller *c, struct error *err) {
    int status = controller_open_run(c, err);
    if (!status)
        status = controller_settle(c, c->cluster->settings, err);
    if (!status)
        status = read_model(c, err);
    if (!status)
        status = open_checkpointer(c, err);
    if (!status)
        doors_lead(c->doors, c->cluster->run, c->model_hash);
    if (!status)
        status = doors_listen(c->doors, err);
    c->stage_began = clock_seconds();
    return status;
}

static int answer_all(struct controller *c, struct error *err) {
    int status = STATUS_OK;
    for (struct queued_request *queued; !status && (queued = request_queue_take(&c->doors->queue));)
        status = controller_answer(c, queued, err);
    return status;
}

// A controller that was stopped has heard nobody meanwhile, which says nothing of the members.
static void look_at_clock(struct controller *c) {
    double now = clock_seconds(), gap = c->stepped > 0 ? now - c->stepped : 0;
    if (gap > AWAY)
        controller_say(c, "this controller stood still for %.0f s", gap);
    if (gap > fmin(AWAY, c->settings.silence / 2))
        controller_hear_all(c);
    if (now - c->stepped > CONTROLLER_LEASE / 2000.0)
        c->asked_again = now + AGAIN; // whoever waited for it asks for a lease by then
    c->stepped = now;
}

static int check_lead(const struct controller *c, struct error *err) {
    return quorum_leads(c->doors->quorum)
               ? STATUS_OK
               : error_set(err, STATUS_UNAVAILABLE, "another controller leads");
}

static int controller_step(struct controller *c, struct error *err) {
    look_at_clock(c);
    int status = check_lead(c, err);
    if (!status)
        status = answer_all(c, err);
    if (!status)
        status = controller_place(c, err);
    if (!status)
        status = look_for_wishes(c, err);
    controller_answer_stops(c);
    if (!status)
        status = check_silence(c, err);
    if (!status)
        controller_look_at_drains(c);
    if (!status)
        status = check_servers(c, err);
    if (!status)
        status = controller_look_at_data(c, err);
    if (!status)
        status = controller_take_result(c, err);
    if (!status)
        status = controller_stay(c, err);
    controller_look_for_waits(c);
    controller_look_for_idleness(c);
    show_progress(c);
    return status ? status : put_page(c, err);
}

static int run_until_left(struct controller *c, struct error *err) {
    int status = STATUS_OK;
    while (!status && !c->all_left) {
        uint32_t seen = gate_look(&c->doors->gate);
        uint64_t before = c->agreements;
        status = controller_step(c, err);
        if (!status && !c->all_left && c->agreements == before)
            gate_wait(&c->doors->gate, seen, TICK);
    }
    if (!status && c->cluster->status)
        status = error_set(err, c->cluster->status, "%s", c->cluster->why);
    if (!status && !controller_has(c, "DONE"))
        status = error_set(err, STATUS_IO,
                           "%s has no DONE, though all epochs are over; "
                           "--resume %s writes it",
                           c->config->folder, c->config->folder);
    return status;
}

// The data servers, who would know, have left.
static void report_end(struct controller *c, int status, const struct error *err) {
    static const char *const reasons[] = {"error", "signal", "nan"};
    if (status == STATUS_OK || !c->attached)
        return;
    int reason = status == STATUS_STOPPED ? 1 : status == STATUS_DIVERGED ? 2 : 0;
    double epoch = fmax(c->ended, c->saved);
    json_t *fields =
        json_pack("{s:I, s:f, s:I, s:s}", "step", (json_int_t)c->clock, "epoch", epoch, "samples",
                  (json_int_t)controller_samples(c), "reason", reasons[reason]);
    if (reason == 0)
        json_put(&fields, "error", json_text(err->text));
    metrics_write(c->metrics, "stop", fields, NULL);
}

// A controller alone is asked nothing any more. Of several, the others must still be heard.
static void end_jobs(struct controller *c) {
    if (controller_is_alone(c->config))
        doors_close(c->doors, true);
    checkpointer_close(c->checkpointer);
}

// Only now: a controller that is killed before has not ended the run.
static void remember_end(struct controller *c, bool *over) {
    struct error err = {0};
    *over = c->all_left;
    if (!c->all_left || !controller_enter(c, CLUSTER_OVER, &err))
        return;
    *over = controller_is_alone(c->config);
    controller_say(c, "warning: %s", err.text);
}

// Who asked for a checkpoint asks the next one that leads, where there is one.
static void close_controller(struct controller *c, bool unseated) {
    struct queued_request **const saves[] = {&c->saving, &c->saves};
    for (int i = 0; i < 2; i++) {
        if (unseated)
            controller_put_off_all(saves[i]);
        else
            controller_answer_saves(saves[i], NULL, "the run ends");
    }
    controller_put_off_all(&c->stops);
    controller_put_off_all(&c->proposals);
    metrics_close(c->metrics);
    agreed_close(&c->agreed);
    progress_free(&c->progress);
    vitals_free(&c->vitals);
    free(c->settings_text);
}

// A controller that leads no more has ended nothing.
static bool is_unseated(const struct controller *c, int status) {
    return status == STATUS_UNAVAILABLE && !c->all_left && !controller_is_alone(c->config);
}

int controller_lead(struct doors *doors, bool *over, struct error *err) {
    struct controller c = {.config = doors->config,
                           .doors = doors,
                           .accounted = NAN,
                           .began = clock_seconds(),
                           .inherited = quorum_inherited(doors->quorum)};
    int status = open_controller(&c, err);
    bool ran = !status;
    *over = false;
    if (ran)
        status = run_until_left(&c, err);
    bool unseated = is_unseated(&c, status);
    if (ran && !unseated)
        report_end(&c, status, err);
    doors_lead(doors, (struct proto_id){{0}}, 0);
    end_jobs(&c);
    if (ran)
        remember_end(&c, over);
    close_controller(&c, unseated);
    return status;
}
