#include "role/controller/checkpointer.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/clock.h"
#include "core/cpu.h"
#include "core/mem.h"
#include "remote/class_names.h"
#include "remote/data_servers.h"
#include "remote/servers_client.h"
#include "train/events.h"
#include "train/feed.h"

enum { PATIENCE = 10000 }; // milliseconds for a dial

struct checkpointer {
    struct checkpointer_config config;
    pthread_t thread;
    bool started;
    struct gate gate; // a job is there, or it is to end
    _Atomic bool busy, begun, over, stopping;
    _Atomic(struct kept *) routes; // newest; the thread takes it
    struct checkpointer_job job;
    char *text; // of the job's settings
    struct checkpointer_result result;

    char *resume; // as configured

    // The thread's own.
    struct settings settings;
    struct checkpoint checkpoint;
    struct kept *known; // routes
    struct servers *servers;
    struct exchange *pull, *store;
    uint64_t *versions, *state_versions; // of the copy
    struct feed *feed;
    struct data_servers_data data;
    uint64_t saved; // clock of the last checkpoint
    bool ever_saved;
};

static void say(struct checkpointer *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct checkpointer *s, const char *format, ...) {
    char text[ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    s->config.say(s->config.self, text);
}

static void report(struct checkpointer *s, const char *event, json_t *fields) {
    struct error err = {0};
    if (events_write(s->config.metrics, &s->checkpoint, event, fields, &err))
        say(s, "warning: %s; the run goes on", err.text);
}

// --- reaching the servers -------------------------------------------------------------------

static struct proto_hello hello_of(const struct checkpointer *s) {
    return (struct proto_hello){
        .role = PROTO_ROLE_CONTROLLER,
        .run = s->config.run,
        .model = s->config.model_hash,
        .name = proto_text("controller"),
    };
}

static struct data_servers data_servers_of(const struct checkpointer *s) {
    return (struct data_servers){
        .hello = hello_of(s),
        .keys = s->config.keys,
        .insecure = s->config.insecure,
        .routes = &s->known->message.routes,
        .absent = s->job.absent,
        .absent_count = s->job.absent_count,
        .digest = s->data.digest,
        .seed = (uint64_t)s->settings.seed,
    };
}

static void take_routes(struct checkpointer *s) {
    struct kept *routes = atomic_exchange(&s->routes, NULL);
    if (!routes)
        return;
    kept_drop(s->known);
    s->known = routes;
    servers_route(s->servers, routes);
}

static void tell(void *self, const char *text) {
    say(self, "%s", text);
}

static int open_servers(struct checkpointer *s, struct error *err) {
    const struct servers_options options = {
        .hello = hello_of(s),
        .parameters = s->checkpoint.model->parameter_count,
        .keys = s->config.keys,
        .insecure = s->config.insecure,
        .self = s,
        .say = tell,
    };
    int status = servers_open(&s->servers, &options, err);
    if (status)
        return status;
    const struct span all = servers_all(s->servers);
    size_t shards = servers_shards(s->servers);
    s->versions = mem_zeroed(shards, sizeof *s->versions);
    s->state_versions = mem_zeroed(shards, sizeof *s->state_versions);
    if (!s->versions || !s->state_versions)
        return error_nomem(err);
    status = exchange_open(&s->pull, s->servers, EXCHANGE_PULL, &all, 1, err);
    return status ? status : exchange_open(&s->store, s->servers, EXCHANGE_STORE, &all, 1, err);
}

// --- the first weights ------------------------------------------------------------------------

static int make_rooms(struct checkpointer *s, struct error *err) {
    struct checkpoint *c = &s->checkpoint;
    size_t n = c->model->parameter_count;
    c->seed = (uint64_t)s->settings.seed;
    c->command = s->config.command;
    c->parameters = mem_floats(n);
    c->state = optimizer_state_name(c->optimizer.rule) ? mem_floats(n) : NULL;
    bool whole = c->parameters && (c->state || !optimizer_state_name(c->optimizer.rule));
    return whole ? STATUS_OK
                 : error_set(err, STATUS_IO, "out of memory for the %zu parameters of %s", n,
                             c->model->name);
}

// What the run goes on from: the weights, and the state when the rule is the same.
static int take_over(struct checkpointer *s, const struct checkpoint *from, struct error *err) {
    struct checkpoint *c = &s->checkpoint;
    size_t n = c->model->parameter_count;
    if (strcmp(from->model->text, c->model->text) != 0)
        return error_set(err, STATUS_DATA, "%s is of another model than %s", s->resume,
                         c->model->name);
    memcpy(c->parameters, from->parameters, n * sizeof *c->parameters);
    if (c->state && from->state && from->optimizer.rule == c->optimizer.rule)
        memcpy(c->state, from->state, n * sizeof *c->state);
    c->clock = from->clock;
    c->samples = from->samples;
    c->epoch = from->epoch;
    const json_t *cursors = json_object_get(from->run, "cursors");
    struct data_servers servers = data_servers_of(s);
    return cursors ? data_servers_resume(&servers, cursors, err) : STATUS_OK;
}

static void say_difference(void *self, const char *name, const char *before, const char *after) {
    say(self, "%s is %s now, was %s", name, after, before);
}

// The run's settings apply, not those with which the checkpoint was made.
static void say_differences(struct checkpointer *s, const struct checkpoint *from) {
    json_t *now = settings_write(&s->settings);
    settings_compare(json_object_get(from->run, "settings"), now, say_difference, s);
    json_decref(now);
}

static int load_weights(struct checkpointer *s, struct error *err) {
    struct checkpoint from = {0};
    int status = checkpoint_load(&from, s->resume, NULL, 0, true, err);
    if (!status)
        status = take_over(s, &from, err);
    if (!status)
        say_differences(s, &from);
    checkpoint_free(&from);
    return status;
}

static int store_part(struct checkpointer *s, enum proto_part part, const float *values,
                      struct error *err) {
    const struct store store = {.part = part, .values = values, .versions = s->versions};
    exchange_store(s->store, &store);
    return exchange_wait(s->store, NULL, err);
}

// State comes first: a server that has all weights is ready.
static int store_weights(struct checkpointer *s, struct error *err) {
    const struct checkpoint *c = &s->checkpoint;
    int status = STATUS_OK;
    for (size_t i = 0; i < servers_shards(s->servers); i++)
        s->versions[i] = c->clock ? c->clock : 1; // 0 says that there are no weights
    if (c->state)
        status = store_part(s, PROTO_PART_STATE, c->state, err);
    return status ? status : store_part(s, PROTO_PART_WEIGHT, c->parameters, err);
}

static int initialise(struct checkpointer *s, struct error *err) {
    int status = STATUS_OK;
    if (s->resume)
        status = load_weights(s, err);
    else
        model_init(s->checkpoint.model, s->checkpoint.parameters, s->checkpoint.seed);
    return status ? status : store_weights(s, err);
}

static void report_start(struct checkpointer *s, bool resumed) {
    const struct model *model = s->checkpoint.model;
    json_t *fields = json_pack(
        "{s:s, s:s, s:I, s:I, s:s, s:s, s:I, s:I, s:b, s:o}", "command", s->config.command,
        "version", ADAM_VERSION, "seed", (json_int_t)s->settings.seed, "batch",
        (json_int_t)s->settings.batch, "mode", s->settings.protocol, "model", model->name,
        "parameters", (json_int_t)model->parameter_count, "connections",
        (json_int_t)model->connections, "resumed", resumed, "train", data_servers_json(&s->data));
    if (s->feed->test)
        json_object_set_new(fields, "test", feed_describe(s->settings.test, s->feed->test));
    struct error err = {0};
    if (metrics_write(s->config.metrics, "start", fields, &err))
        say(s, "warning: %s; the run goes on", err.text);
}

static int fetch_names(struct checkpointer *s, struct error *err) {
    const struct link_options options = {.keys = s->config.keys, .insecure = s->config.insecure};
    const struct proto_hello hello = hello_of(s);
    return class_names_fetch(&s->checkpoint.classes, &s->known->message.routes, &hello, &options,
                             PATIENCE, err);
}

static int open_test(struct checkpointer *s, struct error *err) {
    struct settings test = s->settings;
    const struct source_hooks hooks = {.self = s->config.self, .say = s->config.say};
    test.data = test.ops = NULL; // the data servers'
    return feed_open(&s->feed, &test, s->checkpoint.model, &s->checkpoint.classes, &hooks, err);
}

// It may have been tried before.
static void detach(struct checkpointer *s) {
    struct checkpoint *c = &s->checkpoint;
    feed_close(s->feed);
    s->feed = NULL;
    free(c->parameters);
    free(c->state);
    c->parameters = c->state = NULL;
    classes_free(&c->classes);
    c->classes = (struct classes){0};
}

static int attach(struct checkpointer *s, bool first, struct error *err) {
    detach(s);
    struct data_servers servers = data_servers_of(s);
    int status = data_servers_describe(&servers, model_classes(s->checkpoint.model), &s->data, err);
    if (!status)
        status = fetch_names(s, err);
    if (!status)
        status = open_test(s, err);
    if (!status)
        status = make_rooms(s, err);
    if (!status && first)
        status = initialise(s, err);
    if (status)
        return status;
    s->result.samples = s->data.samples;
    s->saved = s->checkpoint.clock;
    s->ever_saved = first && s->resume;
    report_start(s, !first || s->resume);
    return STATUS_OK;
}

// --- a copy -----------------------------------------------------------------------------------

static int pull_part(struct checkpointer *s, enum proto_part part, float *into, uint64_t *versions,
                     struct error *err) {
    const struct pull pull = {.part = part, .into = into, .versions = versions};
    exchange_pull(s->pull, &pull);
    return exchange_wait(s->pull, NULL, err);
}

static bool is_finite(const float *values, size_t n) {
    bool finite = true;
    for (size_t i = 0; i < n; i++)
        finite &= isfinite(values[i]) != 0;
    return finite;
}

static int take_weights(struct checkpointer *s, struct error *err) {
    struct checkpoint *c = &s->checkpoint;
    int status = pull_part(s, PROTO_PART_WEIGHT, c->parameters, s->versions, err);
    if (!status && c->state)
        status = pull_part(s, PROTO_PART_STATE, c->state, s->state_versions, err);
    if (status)
        return status;
    for (size_t i = 0; i < servers_shards(s->servers); i++)
        if (s->versions[i] > c->clock)
            c->clock = s->versions[i];
    if (is_finite(c->parameters, c->model->parameter_count))
        return STATUS_OK;
    return error_set(err, STATUS_DIVERGED, "the weights are no longer finite");
}

// Where the data servers are comes first: samples are finished when their push was
// acknowledged, so the weights have seen at least what the cursors say.
static int take_copy(struct checkpointer *s, struct error *err) {
    struct data_servers servers = data_servers_of(s);
    json_t *cursors;
    struct checkpoint *c = &s->checkpoint;
    int status = data_servers_cursors(&servers, &cursors, &c->samples, &c->epoch, err);
    if (status)
        return status;
    json_decref(c->run);
    c->run = json_pack("{s:o, s:o, s:o}", "settings", settings_write(&s->settings), "train",
                       data_servers_json(&s->data), "cursors", cursors);
    if (!c->run)
        return error_nomem(err);
    if (s->feed->test)
        json_object_set_new(c->run, "test", feed_describe(s->settings.test, s->feed->test));
    return take_weights(s, err);
}

static int keep_testing(void *self, const struct batch *batch, int i, const float *scores,
                        struct error *err) {
    struct checkpointer *s = self;
    (void)batch;
    (void)scores;
    bool stop = i == 0 && atomic_load(&s->stopping);
    return stop ? error_set(err, STATUS_STOPPED, "stopped while testing") : STATUS_OK;
}

static int test(struct checkpointer *s, struct error *err) {
    struct tally tally;
    double before = clock_seconds();
    int threads = s->settings.threads > 0 ? (int)s->settings.threads : cpu_count();
    int status = tally_init(&tally, model_classes(s->checkpoint.model), err);
    if (status)
        return status;
    status = feed_test(s->feed, &s->settings, s->checkpoint.model, kernels_best(),
                       s->checkpoint.parameters, threads, &tally, keep_testing, s, err);
    if (!status) {
        char text[EVENTS_TEXT];
        s->result.top1 = tally_top1(&tally);
        events_eval_text(text, s->checkpoint.epoch, &tally);
        report(s, "eval", events_eval(&tally, clock_seconds() - before));
        say(s, "%s", text);
    }
    tally_free(&tally);
    return status;
}

// Bytes of the model in the checkpoint; 0: there is none.
static uint64_t measure(const struct checkpointer *s) {
    char file[1100];
    struct stat about;
    snprintf(file, sizeof file, "%s/model.safetensors", s->result.path);
    return stat(file, &about) == 0 ? (uint64_t)about.st_size : 0;
}

static int save(struct checkpointer *s, struct error *err) {
    double before = clock_seconds();
    char *path = run_folder_checkpoint(s->config.folder, s->checkpoint.clock);
    if (!path)
        return error_nomem(err);
    snprintf(s->result.path, sizeof s->result.path, "%s", path);
    free(path);
    // What the run goes on from may be in another folder.
    bool there = s->ever_saved && s->saved == s->checkpoint.clock && measure(s) > 0;
    int status =
        there ? STATUS_OK
              : checkpoint_save(&s->checkpoint, s->config.folder, (int)s->settings.keep_last, err);
    if (status)
        return status;
    s->result.bytes = measure(s);
    s->saved = s->checkpoint.clock;
    s->ever_saved = true;
    if (!there)
        report(
            s, "checkpoint",
            json_pack("{s:s, s:f}", "path", s->result.path, "seconds", clock_seconds() - before));
    return STATUS_OK;
}

static int finish(struct checkpointer *s, struct error *err) {
    double top1 = s->result.top1;
    int status = events_done(s->config.folder, &s->checkpoint, top1, err);
    if (!status)
        report(s, "done", json_pack("{s:o}", "top1", top1 < 0 ? json_null() : json_real(top1)));
    return status;
}

// --- the thread -------------------------------------------------------------------------------

// Of the job. They may have changed since the last one.
static int take_settings(struct checkpointer *s, struct error *err) {
    settings_default(&s->settings);
    int status = settings_parse(&s->settings, s->text, err);
    return status ? status : settings_optimizer(&s->settings, &s->checkpoint.optimizer, err);
}

static int carry_out(struct checkpointer *s, const struct checkpointer_job *job,
                     struct error *err) {
    int status = take_settings(s, err);
    if (!status && job->attach)
        status = attach(s, job->initialise, err);
    if (!status && (job->test || job->save))
        status = take_copy(s, err);
    if (!status && job->test && s->feed->test)
        status = test(s, err);
    if (!status && job->save)
        status = save(s, err);
    if (!status && job->done)
        status = finish(s, err);
    return status;
}

static void do_job(struct checkpointer *s) {
    struct checkpointer_result *result = &s->result;
    result->job = s->job;
    result->err = (struct error){0};
    result->path[0] = 0;
    result->err.status = carry_out(s, &s->job, &result->err);
    result->clock = s->checkpoint.clock;
    result->epoch = s->checkpoint.epoch;
    atomic_store(&s->over, true);
    gate_open(s->config.gate);
}

static void *work(void *self) {
    struct checkpointer *s = self;
    while (!atomic_load(&s->stopping)) {
        uint32_t seen = gate_look(&s->gate);
        take_routes(s);
        if (atomic_exchange(&s->begun, false))
            do_job(s);
        else if (!atomic_load(&s->stopping))
            gate_wait(&s->gate, seen, -1);
    }
    return NULL;
}

// --- for the controller -------------------------------------------------------------------------

int checkpointer_open(struct checkpointer **out, const struct checkpointer_config *config,
                      struct error *err) {
    struct checkpointer *s = mem_zeroed(1, sizeof *s);
    if (!s)
        return error_nomem(err);
    s->config = *config;
    s->result.top1 = -1;
    if (config->resume && !(s->resume = mem_string(config->resume))) {
        checkpointer_close(s);
        return error_nomem(err);
    }
    int status = model_parse(&s->checkpoint.model, config->model_name, config->model, NULL, 0, err);
    if (!status)
        status = open_servers(s, err);
    s->started = !status && pthread_create(&s->thread, NULL, work, s) == 0;
    if (!status && !s->started)
        status = error_set(err, STATUS_IO, "cannot start a thread");
    if (status)
        checkpointer_close(s);
    else
        *out = s;
    return status;
}

void checkpointer_close(struct checkpointer *s) {
    if (!s)
        return;
    checkpointer_stop(s);
    if (s->started)
        pthread_join(s->thread, NULL);
    if (s->pull)
        exchange_close(s->pull);
    if (s->store)
        exchange_close(s->store);
    if (s->servers)
        servers_close(s->servers);
    feed_close(s->feed);
    checkpoint_free(&s->checkpoint);
    kept_drop(s->known);
    kept_drop(atomic_load(&s->routes));
    free(s->versions);
    free(s->state_versions);
    free(s->job.absent);
    free(s->text);
    free(s->resume);
    free(s);
}

void checkpointer_stop(struct checkpointer *s) {
    atomic_store(&s->stopping, true);
    if (s->servers)
        servers_stop(s->servers);
    gate_open(&s->gate);
}

// The servers learn of new routes at once: an exchange may be waiting for them.
void checkpointer_route(struct checkpointer *s, struct kept *routes) {
    kept_hold(routes);
    servers_route(s->servers, routes);
    kept_drop(atomic_exchange(&s->routes, routes));
    gate_open(&s->gate);
}

bool checkpointer_begin(struct checkpointer *s, const struct checkpointer_job *job,
                        const char *settings) {
    char *text = atomic_load(&s->busy) ? NULL : mem_string(settings);
    if (!text)
        return false;
    free(s->text);
    free(s->job.absent);
    s->text = text;
    s->job = *job;
    atomic_store(&s->busy, true);
    atomic_store(&s->begun, true);
    gate_open(&s->gate);
    return true;
}

bool checkpointer_busy(const struct checkpointer *s) {
    return atomic_load(&s->busy);
}

bool checkpointer_take(struct checkpointer *s, struct checkpointer_result *result) {
    if (!atomic_exchange(&s->over, false))
        return false;
    *result = s->result;
    atomic_store(&s->busy, false);
    return true;
}
