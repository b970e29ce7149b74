#include "role/controller/checkpointer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "remote/class_names.h"
#include "role/controller/checkpointer_internal.h"
#include "train/events.h"

void checkpointer_say(struct checkpointer *s, const char *format, ...) {
    char text[ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    s->config.say(s->config.self, text);
}

void checkpointer_report(struct checkpointer *s, const char *event, json_t *fields) {
    struct error err = {0};
    if (events_write(s->config.metrics, &s->checkpoint, event, fields, &err))
        checkpointer_say(s, "warning: %s; the run goes on", err.text);
}

// --- reaching the servers -------------------------------------------------------------------

struct proto_hello checkpointer_hello(const struct checkpointer *s) {
    return (struct proto_hello){
        .role = PROTO_ROLE_CONTROLLER,
        .run = s->config.run,
        .model = s->config.model_hash,
        .name = proto_text("controller"),
    };
}

struct data_servers checkpointer_data_servers(const struct checkpointer *s) {
    return (struct data_servers){
        .hello = checkpointer_hello(s),
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

static void say_line(void *self, const char *text) {
    checkpointer_say(self, "%s", text);
}

static int open_servers(struct checkpointer *s, struct error *err) {
    const struct servers_options options = {
        .hello = checkpointer_hello(s),
        .parameters = s->checkpoint.model->parameter_count,
        .keys = s->config.keys,
        .insecure = s->config.insecure,
        .self = s,
        .say = say_line,
    };
    int status = servers_open(&s->servers, &options, err);
    if (status)
        return status;
    const struct span all = servers_all(s->servers);
    size_t shards = servers_shards(s->servers);
    s->stamps = mem_zeroed(shards, sizeof *s->stamps);
    s->state_stamps = mem_zeroed(KEPT_MOST * shards, sizeof *s->state_stamps);
    if (!s->stamps || !s->state_stamps)
        return error_nomem(err);
    return exchange_open(&s->pull, s->servers, EXCHANGE_PULL, &all, 1, err);
}

// Another checkpointer, which goes on with one's work, does not know yet where the run is.
static void report_start(struct checkpointer *s, bool first) {
    const struct model *model = s->checkpoint.model;
    json_t *fields =
        json_pack("{s:s, s:s, s:I, s:I, s:s, s:s, s:I, s:I, s:b, s:o}", "command",
                  s->config.command, "version", ADAM_VERSION, "seed", (json_int_t)s->settings.seed,
                  "batch", (json_int_t)s->settings.batch, "mode", s->settings.protocol, "model",
                  model->name, "parameters", (json_int_t)model->parameter_count, "connections",
                  (json_int_t)model->connections, "resumed", !first || s->resume, "train",
                  data_servers_json(&s->data));
    if (s->feed->test)
        json_put(&fields, "test", feed_describe(s->settings.test, s->feed->test));
    struct error err = {0};
    if (first ? events_write(s->config.metrics, &s->checkpoint, "start", fields, &err)
              : metrics_write(s->config.metrics, "start", fields, &err))
        checkpointer_say(s, "warning: %s; the run goes on", err.text);
}

static int fetch_names(struct checkpointer *s, struct error *err) {
    const struct link_options options = {.keys = s->config.keys, .insecure = s->config.insecure};
    const struct proto_hello hello = checkpointer_hello(s);
    return class_names_fetch(&s->checkpoint.classes, &s->known->message.routes, &hello, &options,
                             CHECKPOINTER_PATIENCE, err);
}

static int open_test(struct checkpointer *s, struct error *err) {
    struct settings test = s->settings;
    const struct source_hooks hooks = {.self = s->config.self, .say = s->config.say};
    test.data = test.ops = NULL; // the data servers'
    return feed_open(&s->feed, &test, s->checkpoint.model, &s->checkpoint.classes, &hooks, err);
}

// It may have been tried before.
static void detach_data(struct checkpointer *s) {
    struct checkpoint *c = &s->checkpoint;
    feed_close(s->feed);
    s->feed = NULL;
    classes_free(&c->classes);
    c->classes = (struct classes){0};
}

// What another checkpointer of this run has found to be the best.
static void recall_best(struct checkpointer *s) {
    char *folder = checkpoint_folder(s->config.folder);
    json_t *manifest = NULL;
    if (folder && !checkpoint_manifest(&manifest, folder, NULL))
        s->best = best_read(json_object_get(json_object_get(manifest, "run"), "best"));
    json_decref(manifest);
    free(folder);
}

static int attach_data(struct checkpointer *s, bool first, struct error *err) {
    detach_data(s);
    s->checkpoint.seed = (uint64_t)s->settings.seed;
    s->checkpoint.command = s->config.command;
    struct data_servers servers = checkpointer_data_servers(s);
    int status = data_servers_describe(&servers, model_classes(s->checkpoint.model), &s->data, err);
    if (!status)
        status = fetch_names(s, err);
    if (!status)
        status = open_test(s, err);
    if (!status && first)
        status = checkpointer_initialise(s, err);
    if (status)
        return status;
    if (!first)
        recall_best(s);
    s->result.samples = s->data.samples;
    s->result.gap = s->data.gap;
    s->saved = s->checkpoint.clock;
    s->ever_saved = first && s->resume;
    report_start(s, first);
    return STATUS_OK;
}

// --- the thread -------------------------------------------------------------------------------

// Of the job. They may have changed since the last one. A model that is cut may be more than fits
// the memory of one machine.
static int take_settings(struct checkpointer *s, struct error *err) {
    settings_default(&s->settings);
    int status = settings_parse(&s->settings, s->text, err);
    s->checkpoint.scratch = s->settings.partitions > 1 ? s->config.folder : NULL;
    return status ? status : settings_optimizer(&s->settings, &s->checkpoint.optimizer, err);
}

static int carry_out_job(struct checkpointer *s, const struct checkpointer_job *job,
                         struct error *err) {
    int status = take_settings(s, err);
    if (!status && job->attach)
        status = attach_data(s, job->initialise, err);
    if (!status && (job->test || job->save))
        status = checkpointer_take_place(s, err);
    if (!status)
        status = checkpointer_take_copy(s, err);
    if (!status && job->test && s->feed->test)
        status = checkpointer_test(s, err);
    if (!status && job->save)
        status = checkpointer_save(s, err);
    if (!status && job->done)
        status = checkpointer_finish(s, err);
    return status;
}

static void finish_job(struct checkpointer *s) {
    struct checkpointer_result *result = &s->result;
    result->job = s->job;
    result->err = (struct error){0};
    result->path[0] = 0;
    result->hopeless = false;
    s->improved = false;
    result->err.status = carry_out_job(s, &s->job, &result->err);
    checkpointer_drop_copy(s);
    result->clock = s->checkpoint.clock;
    result->epoch = s->checkpoint.epoch;
    result->best = s->best;
    atomic_store(&s->over, true);
    gate_open(s->config.gate);
}

static void *checkpointer_thread(void *self) {
    struct checkpointer *s = self;
    while (!atomic_load(&s->stopping)) {
        uint32_t seen = gate_look(&s->gate);
        take_routes(s);
        if (atomic_exchange(&s->begun, false))
            finish_job(s);
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
    if (config->resume && !(s->resume = mem_string(config->resume))) {
        checkpointer_close(s);
        return error_nomem(err);
    }
    int status = model_parse(&s->checkpoint.model, config->model_name, config->model, NULL, 0, err);
    if (!status)
        status = open_servers(s, err);
    s->started = !status && pthread_create(&s->thread, NULL, checkpointer_thread, s) == 0;
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
    if (s->servers)
        servers_close(s->servers);
    feed_close(s->feed);
    checkpoint_free(&s->checkpoint);
    json_decref(s->places);
    kept_drop(s->known);
    kept_drop(atomic_load(&s->routes));
    free(s->stamps);
    free(s->state_stamps);
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
