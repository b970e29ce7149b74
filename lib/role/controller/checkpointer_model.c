// A copy of the model, its test and its checkpoint.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/cpu.h"
#include "core/error.h"
#include "kernels/kernels.h"
#include "role/controller/checkpointer_internal.h"
#include "train/events.h"

static int pull_quantity(struct checkpointer *s, enum proto_quantity quantity, float *into,
                         struct shard_stamp *stamps, struct error *err) {
    const struct pull pull = {.quantity = quantity, .into = into, .stamps = stamps};
    exchange_pull(s->pull, &pull);
    return exchange_wait(s->pull, NULL, err);
}

// Of what the optimizer keeps, from array `first` on.
static int pull_states(struct checkpointer *s, int first, struct error *err) {
    struct checkpoint *c = &s->checkpoint;
    size_t shards = servers_shards(s->servers);
    int status = STATUS_OK;
    for (int i = first; !status && i < optimizer_kept(&c->optimizer); i++)
        status = pull_quantity(s, (enum proto_quantity)(PROTO_QUANTITY_STATE + i),
                               c->state + (size_t)i * c->model->parameter_count,
                               s->state_stamps + (size_t)i * shards, err);
    return status;
}

static bool is_finite(const float *values, size_t n) {
    bool finite = true;
    for (size_t i = 0; i < n; i++)
        finite &= isfinite(values[i]) != 0;
    return finite;
}

// How far each shard is: they need not have had the same pushes.
static json_t *versions_json(const struct checkpointer *s) {
    json_t *list = json_array();
    for (size_t i = 0; i < servers_shards(s->servers); i++)
        json_append(&list, json_integer((json_int_t)s->stamps[i].version));
    return list;
}

int checkpointer_take_versions(struct checkpointer *s, struct error *err) {
    struct checkpoint *c = &s->checkpoint;
    for (size_t i = 0; i < servers_shards(s->servers); i++)
        if (s->stamps[i].version > c->clock)
            c->clock = s->stamps[i].version;
    json_put(&c->run, "versions", versions_json(s));
    return c->run ? STATUS_OK : error_nomem(err);
}

// Where the data servers are comes first: samples are finished when their push was
// acknowledged, so the weights have seen at least what the cursors say.
int checkpointer_take_place(struct checkpointer *s, struct error *err) {
    struct data_servers servers = checkpointer_data_servers(s);
    json_t *cursors;
    struct checkpoint *c = &s->checkpoint;
    int status = data_servers_cursors(&servers, &cursors, &c->samples, &c->epoch, err);
    if (status)
        return status;
    c->samples -= s->job.skipped < c->samples ? s->job.skipped : c->samples;
    json_decref(c->run);
    c->run = json_pack("{s:o, s:o, s:o}", "settings", settings_write(&s->settings), "train",
                       data_servers_json(&s->data), "cursors", cursors);
    if (s->feed->test)
        json_put(&c->run, "test", feed_describe(s->settings.test, s->feed->test));
    return c->run ? STATUS_OK : error_nomem(err);
}

static bool saves_parts(const struct checkpointer *s) {
    return strcmp(s->settings.checkpoint_parts, "off") != 0;
}

int checkpointer_take_copy(struct checkpointer *s, struct error *err) {
    struct checkpoint *c = &s->checkpoint;
    bool whole = s->job.save && !saves_parts(s), tested = s->job.test && s->feed->test;
    if (!whole && !tested)
        return STATUS_OK;
    bool averaged = c->optimizer.ema > 0;
    int status = checkpoint_make_room(c, whole || averaged, err);
    if (!status)
        status = pull_quantity(s, PROTO_QUANTITY_WEIGHT, c->parameters, s->stamps, err);
    if (!status && c->state)
        status = pull_states(s, whole ? 0 : optimizer_states(c->optimizer.rule), err);
    if (!status)
        status = checkpointer_take_versions(s, err);
    if (status || is_finite(checkpoint_tested(c), c->model->parameter_count))
        return status;
    return error_set(err, STATUS_DIVERGED, "the weights are no longer finite");
}

static int keep_testing(void *self, const struct batch *batch, int i, const float *scores,
                        struct error *err) {
    struct checkpointer *s = self;
    (void)batch;
    (void)scores;
    bool stop = i == 0 && atomic_load(&s->stopping);
    return stop ? error_set(err, STATUS_STOPPED, "stopped while testing") : STATUS_OK;
}

int checkpointer_test(struct checkpointer *s, struct error *err) {
    struct tally tally;
    double before = clock_seconds();
    const struct evaluate_config how = {
        .model = s->checkpoint.model,
        .kernels = kernels_best(),
        .parameters = checkpoint_tested(&s->checkpoint),
        .exact = s->checkpoint.scratch != NULL,
        .threads = s->settings.threads > 0 ? (int)s->settings.threads : cpu_count(),
        .each = keep_testing,
        .self = s,
    };
    int status = tally_open(&tally, s->checkpoint.model, dataset_target_count(s->feed->test), err);
    if (status)
        return status;
    status = feed_test(s->feed, &s->settings, &how, &tally, err);
    if (!status) {
        char text[EVENTS_TEXT];
        s->result.last = events_result(&tally, &s->checkpoint);
        if (s->job.save && s->compared != s->checkpoint.clock) {
            s->improved = best_take(&s->best, &s->result.last);
            s->compared = s->checkpoint.clock;
        }
        events_eval_text(text, s->checkpoint.epoch, &tally);
        checkpointer_report(s, "eval", events_eval(&tally, clock_seconds() - before));
        checkpointer_say(s, "%s", text);
    }
    tally_free(&tally);
    return status;
}

// Bytes of the model in the checkpoint; 0: there is none.
// Parts are newer than what was tested.
int checkpointer_name_best(struct checkpointer *s, struct error *err) {
    struct checkpoint *c = &s->checkpoint;
    if (s->improved)
        s->best.clock = c->clock;
    if (s->best.known)
        json_put(&c->run, "best", best_json(&s->best));
    return c->run ? STATUS_OK : error_nomem(err);
}

static int save_whole(struct checkpointer *s, struct error *err) {
    int status = checkpointer_name_best(s, err);
    return status
               ? status
               : checkpoint_save(&s->checkpoint, s->config.folder, (int)s->settings.keep_last, err);
}

static int name_path(struct checkpointer *s, struct error *err) {
    char *path = run_folder_checkpoint(s->config.folder, s->checkpoint.clock);
    if (!path)
        return error_nomem(err);
    snprintf(s->result.path, sizeof s->result.path, "%s", path);
    free(path);
    return STATUS_OK;
}

static json_t *places_now(const struct checkpointer *s) {
    return json_object_get(s->checkpoint.run, "cursors");
}

// What was copied is saved already, with the samples that are known to be in it now: cursors are
// taken before weights. (What the run goes on from may be in another folder.)
static bool is_saved(const struct checkpointer *s) {
    return s->checkpoint.parameters && s->ever_saved && s->saved == s->checkpoint.clock &&
           (!s->places || json_equal(s->places, places_now(s))) &&
           access(s->result.path, F_OK) == 0;
}

static int save_new(struct checkpointer *s, struct error *err) {
    struct own_parts before;
    int status = checkpointer_list_own(s, &before, err);
    if (!status)
        status = saves_parts(s) ? checkpointer_save_parts(s, err) : save_whole(s, err);
    if (!status)
        checkpointer_drop_parts(s, &before);
    free(before.items);
    return status;
}

int checkpointer_save(struct checkpointer *s, struct error *err) {
    double before = clock_seconds();
    int status = name_path(s, err);
    if (status)
        return status;
    bool there = is_saved(s);
    if (!there)
        status = save_new(s, err);
    if (!status)
        status = name_path(s, err); // parts may be newer than the clock was
    if (status)
        return status;
    s->result.bytes = saves_parts(s) ? s->result.bytes : checkpoint_bytes(s->result.path);
    s->saved = s->checkpoint.clock;
    json_decref(s->places);
    s->places = json_incref(places_now(s));
    s->ever_saved = true;
    if (!there)
        checkpointer_report(
            s, "checkpoint",
            json_pack("{s:s, s:f}", "path", s->result.path, "seconds", clock_seconds() - before));
    return STATUS_OK;
}

int checkpointer_finish(struct checkpointer *s, struct error *err) {
    int status = events_done(s->config.folder, &s->checkpoint, &s->result.last, err);
    if (!status)
        checkpointer_report(s, "done", events_last(&s->result.last));
    return status;
}
