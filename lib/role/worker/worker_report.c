// What a worker tells of itself: to its user, to the controller, and to the metrics.
#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "kernels/kernels.h"
#include "member/event.h"
#include "role/worker/worker_internal.h"
#include "train/events.h"

static void report_event(struct worker *worker, const char *event, json_t *fields) {
    struct error err = {0};
    if (event_report(worker->member, PROTO_ROLE_WORKER, event, fields, &err))
        worker_say(worker, err.text);
}

void worker_report_start(struct worker *worker) {
    char protocol[PROTOCOL_TEXT];
    protocol_name(&worker->protocol, protocol);
    report_event(worker, "start",
                 json_pack("{s:s, s:s, s:I, s:i, s:I, s:s, s:s, s:s, s:s, s:I, s:I}", "command",
                           worker->options.command, "version", ADAM_VERSION, "seed",
                           (json_int_t)worker->settings.seed, "threads", worker->threads, "batch",
                           (json_int_t)worker->settings.batch, "protocol", protocol, "push",
                           protocol_push_names[worker->push], "cpu", worker->kernels->name, "model",
                           worker->model->name, "parameters",
                           (json_int_t)worker->model->parameter_count, "connections",
                           (json_int_t)worker->model->connections));
}

static struct worker_report report_now(const struct worker *worker) {
    return (struct worker_report){
        .sums = loop_sums(worker->loop),
        .seconds = clock_seconds() - worker->begun,
        .waited = home_servers_figures(worker->home).waited,
    };
}

static double epoch_of(const struct worker *worker) {
    return pace_epoch(&worker->pace, loop_place(worker->loop));
}

// What training was like between two looks; nothing changes when there was none.
struct lately {
    double samples, seconds, loss, waiting, overlap;
};

static struct lately compare_reports(const struct worker *worker, const struct worker_report *now) {
    const struct worker_report *then = &worker->reported;
    double threads = (double)worker->threads;
    struct lately lately = {
        .samples = (double)(now->sums.samples - then->sums.samples),
        .seconds = now->seconds - then->seconds,
    };
    double all = lately.seconds * threads, data = now->sums.waited - then->sums.waited;
    double servers = now->waited - then->waited, computing = all - data - servers;
    lately.loss = lately.samples > 0 ? (now->sums.loss - then->sums.loss) / lately.samples : NAN;
    lately.waiting = all > 0 ? fmin(data / all, 1) : 0;
    // "the ratio between computation time and the sum of computation and communication
    //  time" (Rudra 3.3, table 1)
    computing = computing > 0 ? computing : 0;
    lately.overlap = computing + servers > 0 ? computing / (computing + servers) : 1;
    return lately;
}

// A line that tells where the worker is; takes over the reference to `more`.
static void report_place(struct worker *worker, uint64_t samples, const char *event, json_t *more) {
    struct home *parameters = home_servers_home(worker->home);
    json_t *fields =
        json_pack("{s:I, s:f, s:I}", "step", (json_int_t)parameters->ops->clock(parameters),
                  "epoch", epoch_of(worker), "samples", (json_int_t)samples);
    json_object_update(fields, more);
    json_decref(more);
    report_event(worker, event, fields);
}

static void report_train(struct worker *worker, const struct worker_report *now,
                         const struct lately *lately) {
    struct servers_figures servers = servers_figures(worker->servers);
    struct home_servers_figures home = home_servers_figures(worker->home);
    double rate = lately->samples / lately->seconds;
    json_t *fields =
        json_pack("{s:o, s:f, s:f, s:f, s:f, s:f, s:f}", "loss", json_number(lately->loss), "rate",
                  schedule_rate(&worker->schedule, epoch_of(worker)), "images_per_s", rate,
                  "connections_per_s", rate * (double)worker->model->connections, "wait",
                  lately->waiting, "overlap", lately->overlap, "seconds", lately->seconds);
    json_t *more =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "push_every",
                  (json_int_t)home.push_every, "pushes", (json_int_t)home.pushes, "pulls",
                  (json_int_t)servers.pulls, "unchanged", (json_int_t)servers.unchanged, "refused",
                  (json_int_t)servers.refused, "pushes_refused",
                  (json_int_t)(worker->refused_before + servers.pushes_refused), "too_stale",
                  (json_int_t)home.too_stale, "redials", (json_int_t)servers.redials, "received",
                  (json_int_t)servers.received, "sent", (json_int_t)servers.sent);
    json_object_update(fields, more);
    json_decref(more);
    report_place(worker, now->sums.samples, "train", fields);
}

// Whom it waits for: only one that does not get on.
static void find_wait(struct worker *worker, char text[PROTO_ADDRESS_MAX]) {
    servers_waits_for(worker->servers, text);
    if (!text[0] && worker->data)
        data_client_waits_for(worker->data, text);
}

static void set_figures(struct worker *worker, const struct worker_report *now,
                        const struct lately *lately) {
    const struct servers_figures servers = servers_figures(worker->servers);
    struct data_client_figures data = {0};
    if (worker->data)
        data = data_client_figures(worker->data);
    if (worker->links)
        neighbour_links_traffic(worker->links, &data.received, &data.sent);
    struct home *parameters = home_servers_home(worker->home);
    struct proto_heartbeat *figures = &worker->figures;
    char waits_for[PROTO_ADDRESS_MAX];
    find_wait(worker, waits_for);
    pthread_mutex_lock(&worker->lock);
    memcpy(worker->waits_for, waits_for, sizeof waits_for);
    figures->clock = parameters->ops->clock(parameters);
    figures->samples = worker_leads(worker) ? now->sums.samples : 0; // they are the replica's
    figures->pushes = home_servers_figures(worker->home).pushes;
    figures->pulls = servers.pulls;
    figures->refused = worker->refused_before + servers.pushes_refused;
    figures->received = servers.received + data.received;
    figures->sent = servers.sent + data.sent;
    figures->epoch = epoch_of(worker);
    figures->rate = lately->seconds > 0 ? lately->samples / lately->seconds : 0;
    figures->loss = worker_leads(worker) ? lately->loss : NAN;
    figures->waiting = lately->waiting;
    figures->overlap = lately->overlap;
    pthread_mutex_unlock(&worker->lock);
}

static void show_progress(struct worker *worker, const struct worker_report *now,
                          const struct lately *lately) {
    struct trainer_progress *progress = &worker->progress;
    const struct trainer_hooks *hooks = &worker->options.hooks;
    progress->epoch = epoch_of(worker);
    progress->epochs = (double)settings_last_epoch(&worker->settings);
    progress->samples = now->sums.samples;
    progress->rate = schedule_rate(&worker->schedule, progress->epoch);
    if (lately->samples > 0 && lately->seconds > 0) {
        progress->loss = lately->loss;
        progress->samples_per_s = lately->samples / lately->seconds;
        progress->waiting = lately->waiting;
    }
    progress->seconds_left = -1; // others train on the same samples
    progress->partition = worker->partition;
    if (hooks->progress)
        hooks->progress(hooks->self, progress);
}

void worker_report(struct worker *worker, bool last) {
    const struct worker_report now = report_now(worker);
    const struct lately lately = compare_reports(worker, &now);
    set_figures(worker, &now, &lately);
    show_progress(worker, &now, &lately);
    if (lately.seconds <= 0 || lately.samples <= 0 ||
        (!last && lately.seconds < worker->settings.metrics_every))
        return;
    if (worker_leads(worker)) // it speaks for its replica
        report_train(worker, &now, &lately);
    worker->reported = now;
}

void worker_report_stop(struct worker *worker, int status, const struct error *err, double loss) {
    if (status == STATUS_OK || !worker->loop)
        return;
    uint64_t samples = loop_sums(worker->loop).samples;
    if (status == STATUS_DIVERGED)
        report_place(worker, samples, "nan", json_pack("{s:o}", "loss", json_number(loss)));
    const char *reason = status == STATUS_DIVERGED  ? "nan"
                         : status == STATUS_STOPPED ? "signal"
                                                    : "error";
    json_t *fields = json_pack("{s:s}", "reason", reason);
    if (!strcmp(reason, "error"))
        json_put(&fields, "error", json_text(err->text));
    report_place(worker, samples, "stop", fields);
}

void worker_state(struct worker *worker, enum proto_state state) {
    pthread_mutex_lock(&worker->lock);
    worker->figures.state = (uint16_t)state;
    pthread_mutex_unlock(&worker->lock);
}

void worker_figures(void *self, struct proto_heartbeat *figures) {
    struct worker *worker = self;
    pthread_mutex_lock(&worker->lock);
    uint64_t session = figures->session;
    *figures = worker->figures;
    figures->session = session;
    memcpy(worker->told, worker->waits_for, sizeof worker->told);
    figures->waits_for = proto_text(worker->told);
    pthread_mutex_unlock(&worker->lock);
}
