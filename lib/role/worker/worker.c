#include "role/worker/worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "core/cpu.h"
#include "core/error.h"
#include "kernels/kernels.h"
#include "member/run_text.h"
#include "member/sharers.h"
#include "role/worker/worker_internal.h"
#include "run/model_ops.h"

#define AGAIN 1.0  // seconds from the loss of a session to joining anew
#define GRACE 10.0 // seconds to bring home what was trained on, once all is to end

// --- talk, and the reason to end ------------------------------------------------------

void worker_say(struct worker *worker, const char *text) {
    const struct trainer_hooks *hooks = &worker->options.hooks;
    pthread_mutex_lock(&worker->lock);
    if (hooks->say)
        hooks->say(hooks->self, text);
    pthread_mutex_unlock(&worker->lock);
}

static void say_line(void *self, const char *text) {
    worker_say(self, text);
}

// It ends, for this reason unless it does already; any thread.
static void end_for(struct worker *worker, enum worker_end end) {
    int none = WORKER_GOES_ON;
    atomic_compare_exchange_strong(&worker->end, &none, end);
}

void worker_fail(struct worker *worker, const struct error *why) {
    pthread_mutex_lock(&worker->lock);
    if (!worker->failure.status)
        worker->failure = *why;
    pthread_mutex_unlock(&worker->lock);
    end_for(worker, WORKER_FAILED);
}

bool worker_is_ending(struct worker *worker) {
    return atomic_load(&worker->end) != WORKER_GOES_ON;
}

// --- the watching thread --------------------------------------------------------------

static void forward_routes(struct worker *worker) {
    struct kept *routes = member_routes(worker->member);
    if (!routes)
        return;
    servers_route(worker->servers, routes);
    if (worker->data)
        data_client_route(worker->data, routes);
    kept_drop(routes);
}

// Who shares the model, this worker included, for the home.
static void count_sharers(struct worker *worker) {
    struct kept *members = member_members(worker->member);
    size_t count = members ? sharers_count(&members->message.status) : 0;
    kept_drop(members);
    if (count > 0)
        home_servers_sharers(worker->home, count);
}

static void take_orders(struct worker *worker) {
    const struct trainer_hooks *hooks = &worker->options.hooks;
    struct member_order order;
    struct error err = {0};
    if (hooks->wish && hooks->wish(hooks->self) == TRAINER_STOP)
        end_for(worker, WORKER_STOPPED);
    if (member_take_order(worker->member, &order) && order.order == PROTO_ORDER_STOP)
        end_for(worker, WORKER_OVER);
    if (member_status(worker->member, &err))
        worker_fail(worker, &err);
    if (worker->data && supply_status(data_client_supply(worker->data), &err))
        worker_fail(worker, &err);
    worker_watch_replica(worker);
    if (home_servers_status(worker->home, &err))
        worker_fail(worker, &err);
}

// Ends all waits: at once those for input, after a while the final push.
static void enforce_end(struct worker *worker, double *since) {
    if (!worker_is_ending(worker))
        return;
    double now = clock_seconds();
    *since = *since > 0 ? *since : now;
    if (worker->data)
        supply_cancel(data_client_supply(worker->data));
    if (atomic_load(&worker->training) && now - *since <= GRACE &&
        atomic_load(&worker->end) != WORKER_FAILED)
        return;
    servers_stop(worker->servers);
    neighbour_links_stop(worker->links);
}

static void *watch_thread(void *self) {
    struct worker *worker = self;
    double since = 0;
    while (!atomic_load(&worker->closing)) {
        uint32_t seen = member_news(worker->member);
        forward_routes(worker);
        count_sharers(worker);
        take_orders(worker);
        enforce_end(worker, &since);
        member_wait(worker->member, seen, WORKER_POLL);
    }
    return NULL;
}

static int start_watching(struct worker *worker, struct error *err) {
    if (pthread_create(&worker->watcher, NULL, watch_thread, worker))
        return error_set(err, STATUS_IO, "cannot start a thread to listen to the controller");
    worker->watching = true;
    return STATUS_OK;
}

// --- the run --------------------------------------------------------------------------

static int why_it_ends(struct worker *worker, struct error *err) {
    switch (atomic_load(&worker->end)) {
    case WORKER_STOPPED:
        return error_set(err, STATUS_STOPPED, "stopped; the run goes on without this worker");
    case WORKER_FAILED:
        pthread_mutex_lock(&worker->lock);
        *err = worker->failure;
        pthread_mutex_unlock(&worker->lock);
        return err->status;
    default:
        return STATUS_OK;
    }
}

int worker_wait_more(struct worker *worker, const char *before, struct error *err) {
    const struct trainer_hooks *hooks = &worker->options.hooks;
    struct member_order order;
    int status = member_status(worker->member, err);
    if (!status && hooks->wish && hooks->wish(hooks->self) == TRAINER_STOP)
        status = error_set(err, STATUS_STOPPED, "stopped before %s", before);
    if (!status && member_take_order(worker->member, &order) && order.order == PROTO_ORDER_STOP)
        end_for(worker, WORKER_OVER);
    return status;
}

static int wait_for_run(struct worker *worker, struct error *err) {
    for (;;) {
        uint32_t seen = member_news(worker->member);
        int status = worker_wait_more(worker, "it had joined", err);
        if (status)
            return status;
        worker->run = member_run(worker->member);
        if (worker->run || worker_is_ending(worker))
            return STATUS_OK;
        member_wait(worker->member, seen, WORKER_POLL);
    }
}

static int read_settings(struct worker *worker, const struct kept *run, struct error *err) {
    struct settings settings;
    char *text;
    int status = run_settings(&settings, &text, &run->message.run, err);
    if (status)
        return status;
    status = settings_optimizer(&settings, &worker->optimizer, err);
    worker->optimizer.ema = 0; // the servers keep the average
    if (!status)
        status = settings_protocol(&settings, &worker->protocol, &worker->push, err);
    if (!status)
        status = settings_schedule(&settings, (double)settings_epochs(&settings), &worker->schedule,
                                   err);
    if (status) {
        free(text);
        return error_context(err, "settings of the run");
    }
    free(worker->settings_text);
    worker->settings_text = text;
    worker->settings = settings;
    return STATUS_OK;
}

static int read_model(struct worker *worker, struct error *err) {
    const char *name = worker->settings.model ? worker->settings.model : "the run's model";
    int status = run_model(&worker->model, name, &worker->run->message.run, err);
    return status ? status : model_ops_open(&worker->input, worker->model, err);
}

static int read_run(struct worker *worker, struct error *err) {
    int status = read_settings(worker, worker->run, err);
    if (!status)
        status = read_model(worker, err);
    int64_t threads =
        worker->options.threads > 0 ? worker->options.threads : worker->settings.threads;
    worker->threads = threads > 0 ? (int)threads : cpu_count();
    worker->kernels = kernels_best();
    return status;
}

// --- its parts ------------------------------------------------------------------------

static int open_parts(struct worker *worker, struct error *err) {
    int status = worker_open_replica(worker, err);
    if (status || worker_is_ending(worker))
        return status;
    status = worker_open_servers(worker, err);
    if (!status)
        status = worker_open_home(worker, err);
    if (!status)
        status = worker_open_data(worker, err);
    return status ? status : start_watching(worker, err);
}

// Only the data servers know the length of an epoch.
static void wait_for_data(struct worker *worker) {
    worker->pace.batch = (uint64_t)worker->settings.batch;
    while (worker->data && !worker_is_ending(worker)) {
        uint32_t seen = member_news(worker->member);
        worker->pace.samples = data_client_figures(worker->data).total;
        if (worker->pace.samples > 0)
            break;
        member_wait(worker->member, seen, WORKER_POLL);
    }
}

// --- training -------------------------------------------------------------------------

// Settings that may change while a run goes on; the threads stand still.
static void change_settings(struct worker *worker, struct kept *run) {
    struct error err = {0};
    kept_drop(worker->run);
    worker->run = run;
    if (read_settings(worker, run, &err)) {
        worker_say(worker, err.text);
        return;
    }
    home_servers_pace(worker->home, (uint64_t)worker->settings.push_every,
                      (uint64_t)worker->settings.pull_every);
    home_servers_change(worker->home);
    worker_say(worker, "the settings have changed");
}

static bool newer_run(const struct worker *worker, struct kept *run) {
    return run && run->message.run.version != worker->run->message.run.version;
}

// Lets the threads train until all ends; stands still to change settings.
static void train_until_end(struct worker *worker) {
    bool parked = true, started = false; // before loop_start, exhausted is of the call before
    double loss;
    while (!worker_is_ending(worker) || !parked) {
        struct kept *run = member_run(worker->member);
        bool changed = newer_run(worker, run);
        if (parked && changed)
            change_settings(worker, run);
        else
            kept_drop(run);
        if (parked && started && loop_exhausted(worker->loop))
            return;
        started = true;
        if (parked)
            loop_start(worker->loop, UINT64_MAX);
        else if (changed || (worker_is_ending(worker) && worker_may_pause(worker)))
            loop_pause(worker->loop);
        parked = loop_wait(worker->loop, WORKER_POLL);
        if (parked && loop_diverged(worker->loop, &loss))
            return;
        worker_report(worker, false);
    }
}

// The supply has no more: the run is about to be over, or something failed. Under hardsync
// others may still need this worker's turn. True: there is more after all.
static bool await_end(struct worker *worker) {
    while (!worker_is_ending(worker)) {
        if (worker->data && !data_client_over(worker->data))
            return true;
        uint32_t seen = member_news(worker->member);
        if (worker->data)
            loop_turn(worker->loop);
        worker_report(worker, false);
        member_wait(worker->member, seen, WORKER_POLL);
    }
    return false;
}

static int error_diverged(struct worker *worker, double loss, struct error *err) {
    return error_set(err, STATUS_DIVERGED,
                     "the loss is no longer finite (%g; rate %g), and the update was refused; try "
                     "a lower rate, a warmup or clip",
                     loss, worker->progress.rate);
}

// What was trained on comes home, and its leases are over.
static int bring_home(struct worker *worker, struct error *err) {
    int status = home_servers_flush(worker->home, err);
    worker_report(worker, true);
    if (worker->data && !data_client_flush(worker->data, GRACE) && !status)
        worker_say(worker, "some data servers have not heard what was trained on");
    return status;
}

static int train_all(struct worker *worker, double *loss, struct error *err) {
    worker_state(worker, PROTO_STATE_WORKING);
    worker_report_start(worker);
    do {
        train_until_end(worker);
        if (loop_diverged(worker->loop, loss))
            return error_diverged(worker, *loss, err);
        int status = bring_home(worker, err);
        if (status && atomic_load(&worker->end) != WORKER_FAILED)
            return status;
    } while (await_end(worker));
    return why_it_ends(worker, err);
}

// The first weights, which come when the run begins.
static int begin_training(struct worker *worker, struct error *err) {
    int status = home_servers_begin(worker->home, err);
    if (!status)
        wait_for_data(worker);
    if (worker_is_ending(worker))
        return why_it_ends(worker, err);
    return status ? status : worker_open_loop(worker, err);
}

static int train_run(struct worker *worker, double *loss, struct error *err) {
    int status = wait_for_run(worker, err);
    if (status || worker_is_ending(worker))
        return status;
    status = read_run(worker, err);
    if (!status)
        status = open_parts(worker, err);
    if (!status && worker_is_ending(worker))
        return why_it_ends(worker, err);
    if (!status)
        status = begin_training(worker, err);
    if (status || !worker->loop)
        return status;
    worker->begun = clock_seconds();
    atomic_store(&worker->training, true);
    return train_all(worker, loss, err);
}

// --- its beginning and its end --------------------------------------------------------

static int listen_to_replica(struct worker *worker, struct error *err) {
    const struct worker_options *o = &worker->options;
    const struct neighbour_links_options options = {
        .listen = o->listen, .keys = o->keys, .insecure = o->insecure};
    return o->listen ? neighbour_links_open(&worker->links, &options, err) : STATUS_OK;
}

static int join_run(struct worker *worker, struct error *err) {
    const struct worker_options *o = &worker->options;
    int status = listen_to_replica(worker, err);
    if (status)
        return status;
    const struct member_options options = {
        .role = PROTO_ROLE_WORKER,
        .controller = o->controller,
        .name = o->name,
        .threads = (uint32_t)(o->threads > 0 ? o->threads : cpu_count()),
        .training = worker->links ? neighbour_links_address(worker->links) : NULL,
        .keys = o->keys,
        .insecure = o->insecure,
        .members = true,
        .hooks = {.self = worker, .say = say_line, .figures = worker_figures},
    };
    return member_open(&worker->member, &options, err);
}

static void stop_watching(struct worker *worker) {
    if (!worker->watching)
        return;
    atomic_store(&worker->closing, true);
    pthread_join(worker->watcher, NULL);
}

static const char *reason_of(int status, bool lost) {
    return lost                        ? "its session is over, or not its own: it joins anew"
           : status == STATUS_OK       ? "the run is over"
           : status == STATUS_STOPPED  ? "stopped by its user"
           : status == STATUS_DIVERGED ? "its loss is no longer finite"
                                       : "it failed";
}

static void leave_run(struct worker *worker, int status, bool lost) {
    stop_watching(worker);
    if (worker->servers)
        servers_stop(worker->servers);
    if (worker->data)
        supply_cancel(data_client_supply(worker->data));
    neighbour_links_stop(worker->links);
    loop_close(worker->loop);
    worker_close_data(worker);
    home_servers_close(worker->home);
    servers_close(worker->servers);
    worker_close_replica(worker);
    if (worker->member)
        member_close(worker->member, reason_of(status, lost));
    kept_drop(worker->run);
    ops_free(worker->input);
    model_free(worker->model);
    free(worker->settings_text);
    pthread_mutex_destroy(&worker->lock);
    pthread_mutex_destroy(&worker->data_lock);
}

// Its session is over, or its pushes are refused in it, though neither the run nor the user
// wants it to end: it joins anew. One that could not join has no session.
static bool has_lost_session(struct worker *worker, int status) {
    struct member_identity identity;
    int end = atomic_load(&worker->end);
    return status == STATUS_STOPPED && (end == WORKER_GOES_ON || end == WORKER_FAILED) &&
           worker->member && member_identity(worker->member, &identity);
}

// From joining to leaving. *lost: it should join anew. *refused grows by its pushes that
// were refused.
static int work_once(const struct worker_options *options, bool *lost, uint64_t *refused,
                     struct error *err) {
    struct worker worker = {
        .options = *options, .figures = {.loss = NAN}, .refused_before = *refused};
    double loss = NAN;
    pthread_mutex_init(&worker.lock, NULL);
    pthread_mutex_init(&worker.data_lock, NULL);
    int status = join_run(&worker, err);
    *lost = false;
    if (!status) {
        status = train_run(&worker, &loss, err);
        *lost = has_lost_session(&worker, status);
        worker_state(&worker, PROTO_STATE_LEAVING);
        if (!*lost)
            worker_report_stop(&worker, status, err, loss);
    }
    if (worker.servers)
        *refused += servers_figures(worker.servers).pushes_refused;
    leave_run(&worker, status, *lost);
    return status;
}

static void say_lost(const struct worker_options *options, const struct error *err) {
    char text[ERROR_TEXT + 32];
    snprintf(text, sizeof text, "%s; joining anew", err->text);
    if (options->hooks.say)
        options->hooks.say(options->hooks.self, text);
}

// False when the user wishes it to end.
static bool rest_before_retry(const struct worker_options *options) {
    const struct timespec poll = {.tv_nsec = (long)(WORKER_POLL * 1e9)};
    for (double until = clock_seconds() + AGAIN; clock_seconds() < until;) {
        if (options->hooks.wish && options->hooks.wish(options->hooks.self) == TRAINER_STOP)
            return false;
        nanosleep(&poll, NULL);
    }
    return true;
}

int worker_run(const struct worker_options *options, struct error *err) {
    uint64_t refused = 0;
    for (;;) {
        struct error why = {0};
        bool lost;
        int status = work_once(options, &lost, &refused, &why);
        if (lost)
            say_lost(options, &why);
        if (!lost || !rest_before_retry(options)) {
            if (err)
                *err = why;
            return status;
        }
    }
}
