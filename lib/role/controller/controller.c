#include "role/controller/controller.h"

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

// What the checkpointer waits for ends, too.
int controller_end_at_once(struct controller *c, int status, const char *why, struct error *err) {
    int failed = controller_end(c, status, CLUSTER_STOPPING, why, err);
    if (!failed)
        checkpointer_stop(c->checkpointer);
    return failed;
}

// --- what is wished -----------------------------------------------------------------------------

static int stop_run(struct controller *c, bool save, struct error *err) {
    char why[512];
    if (!save || c->cluster->stage == CLUSTER_STARTING) {
        snprintf(why, sizeof why, "stopped%s; what was saved before is kept in %s",
                 save ? " before training began" : " at once, without saving", c->config->folder);
        return controller_end_at_once(c, STATUS_STOPPED, why, err);
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
        status = controller_check_silence(c, err);
    if (!status)
        controller_look_at_drains(c);
    if (!status)
        status = controller_check_servers(c, err);
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
