// Where the run stands when its controller starts.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "role/controller/controller_internal.h"
#include "role/controller/metrics_copy.h"
#include "run/model_ops.h"
#include "train/class_weights.h"

static char *path_in(const char *folder, const char *name) {
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

// The file is locked by who writes it: a run has one controller. Of several each has a lock of
// its own (role/controller/quorum.h), and shares this one: who stands still cannot give it back.
static int open_metrics(struct controller *c, struct error *err) {
    bool alone = controller_is_alone(c->config);
    char *path = path_in(c->config->folder, "metrics.jsonl");
    int status =
        path ? metrics_open(&c->metrics, path, "controller", 0, !alone, err) : error_nomem(err);
    free(path);
    return status;
}

bool controller_has(const struct controller *c, const char *name) {
    char *path = path_in(c->config->folder, name);
    bool there = path && access(path, F_OK) == 0;
    free(path);
    return there;
}

bool controller_latest(const struct controller *c, char path[512]) {
    char *link = path_in(c->config->folder, "latest"), name[256] = "";
    ssize_t length = link ? readlink(link, name, sizeof name - 1) : -1;
    snprintf(path, 512, "%s%s%.*s", c->config->folder, length > 0 ? "/" : "",
             length > 0 ? (int)length : 0, name);
    free(link);
    return length > 0;
}

static bool same_folder(const char *a, const char *b) {
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

// --- a new run ------------------------------------------------------------------------------

int controller_check_settings(const struct settings *s, struct error *err) {
    double share;
    int status = settings_holdout(s, &share, err);
    if (!status && share > 0)
        status =
            error_set(err, STATUS_USAGE,
                      "test = %s is for adam-worker alone: adam-prep --split test=%g makes the "
                      "files for a run of many processes",
                      s->test, share);
    if (status)
        return status;
    if (s->partitions > 1 && s->threads > 0)
        return error_set(err, STATUS_USAGE,
                         "threads=%lld and partitions=%lld: each partition has a thread of its own",
                         (long long)s->threads, (long long)s->partitions);
    if (s->patience > 0 && !s->test)
        return error_set(err, STATUS_USAGE, "patience=%lld needs tests: set test = FILE",
                         (long long)s->patience);
    return settings_check(s, err);
}

int controller_check_file(const struct run_file *file, struct error *err) {
    const struct settings *s = &file->settings;
    if (!s->model)
        return error_set(err, STATUS_USAGE, "the run has no model: set model = FILE");
    int status = controller_check_settings(s, err);
    if (!status && s->test && access(s->test, R_OK))
        status = error_errno(err, STATUS_NOINPUT, "%s", s->test);
    return status;
}

// The last epoch of a run may be one that it has trained already.
static void say_if_trained(const struct controller *c, const struct settings *settings,
                           const json_t *manifest) {
    long long epochs = (long long)settings_epochs(settings);
    char text[96];
    if (json_number_value(json_object_get(manifest, "epoch")) < (double)epochs)
        return;
    snprintf(text, sizeof text, "nothing to do: all %lld epochs are done; more by epochs = N",
             epochs);
    doors_say(c->doors, text);
}

// Whether the state of the optimizer goes on, too, is told by the settings of before. A manifest
// that is not to be had is told of by who reads the checkpoint.
static void go_on_from(const struct controller *c, struct settings *settings, const char *resume) {
    char *folder = checkpoint_folder(resume);
    json_t *manifest = NULL;
    if (folder && !checkpoint_manifest(&manifest, folder, NULL)) {
        json_int_t clock = json_integer_value(json_object_get(manifest, "clock"));
        settings_go_on(settings, json_object_get(manifest, "run"), clock > 0 ? (uint64_t)clock : 0);
        say_if_trained(c, settings, manifest);
    }
    json_decref(manifest);
    free(folder);
}

static int new_cluster(const struct controller *c, struct cluster *next, const struct model *model,
                       const char *resume, struct error *err) {
    struct proto_id run;
    struct settings settings = c->config->file->settings;
    if (resume)
        go_on_from(c, &settings, resume);
    char *text = settings_text(&settings);
    if (!text)
        return error_nomem(err);
    int status = getrandom(run.bytes, sizeof run.bytes, 0) == sizeof run.bytes
                     ? cluster_open(next, run, model->name, model->text, text, resume, err)
                     : error_errno(err, STATUS_IO, "getrandom");
    next->partitions = (uint32_t)settings.partitions;
    next->warm = c->config->file->settings.warm_start == 0 || resume;
    free(text);
    return status;
}

static void say_of_data(void *self, const char *text) {
    doors_say(self, text);
}

static int begin_run(const struct controller *c, struct cluster *next, const char *resume,
                     struct error *err) {
    const struct run_file *file = c->config->file;
    const struct source_hooks hooks = {.self = c->doors, .say = say_of_data};
    struct model *model = NULL;
    int status = controller_check_file(file, err);
    if (!status)
        status = settings_check_text("out", c->config->folder, err);
    if (!status)
        status = model_ops_read(&model, file->settings.model, file->sets, file->set_count, err);
    if (!status)
        status = model_check_learns(model, err);
    if (!status)
        status = class_weights_apply(&model, &file->settings, &hooks, err);
    if (!status)
        status = new_cluster(c, next, model, resume, err);
    model_free(model);
    return status;
}

// A folder for it, empty unless the run goes on with what is there.
static int make_folder(struct controller *c, bool keep, struct error *err) {
    metrics_close(c->metrics);
    c->metrics = NULL;
    int status = keep ? run_folder_not_done(c->config->folder, err)
                      : run_folder_make(c->config->folder, err);
    return status ? status : open_metrics(c, err);
}

static int begin_anew(struct controller *c, const char *resume, struct error *err) {
    const char *folder = c->config->folder;
    bool keep = resume && same_folder(resume, folder);
    struct cluster *next = mem_zeroed(1, sizeof *next);
    int status = next ? begin_run(c, next, resume, err) : error_nomem(err);
    if (!status && !keep && !c->metrics)
        status = run_folder_check(folder, true, err);
    if (!status)
        status = make_folder(c, keep, err);
    return controller_commit(c, next, status, err);
}

// --- a run that was there ---------------------------------------------------------------------

// Whoever is waited for has all of that time again.
static void wait_anew(struct controller *c, double now) {
    for (size_t i = 0; i < c->cluster->part_count; i++)
        c->progress.parts[i].missing = 0;
    c->lost_since = c->lost_since > 0 ? now : 0;
    c->gap_since = c->gap_since > 0 ? now : 0;
    if (c->cluster->stage == CLUSTER_STOPPING)
        c->stage_began = now;
}

void controller_hear_all(struct controller *c) {
    double now = clock_seconds();
    wait_anew(c, now);
    for (size_t i = 0; i < c->cluster->member_count; i++)
        if (!c->cluster->members[i].gone)
            vitals_heard(&c->vitals, c->cluster->members[i].number, now);
}

// What is agreed on, if anything is. Before it is read, no other controller may write it.
static int read_state(struct controller *c, struct error *err) {
    struct quorum *quorum = c->doors->quorum;
    const struct agreement agreement = quorum_agreement(quorum);
    uint64_t version;
    int status = controller_has(c, "controller.state") ? open_metrics(c, err) : STATUS_OK;
    if (!status)
        status = quorum_recall(quorum, err);
    char *text = status ? NULL : quorum_state(quorum, &version);
    if (!status)
        status = agreed_open(&c->agreed, &agreement, text, err);
    free(text);
    c->cluster = c->agreed.state;
    return status;
}

// Of several controllers, another one may have led on another machine.
static int adopt_metrics(struct controller *c, struct error *err) {
    int status = controller_is_alone(c->config)
                     ? STATUS_OK
                     : metrics_copy_adopt(c->config->folder, c->config->id, err);
    return status ? status : open_metrics(c, err);
}

static int follow_state(struct controller *c, struct error *err) {
    int status = c->metrics ? STATUS_OK : adopt_metrics(c, err);
    if (!status)
        status = controller_settle(c, c->cluster->settings, err);
    if (!status)
        status = progress_reserve(&c->progress, c->cluster, err);
    if (!status)
        progress_follow(&c->progress, c->cluster);
    return status;
}

static bool lives_or_returns(const void *self, const struct cluster_member *member) {
    const struct controller *c = self;
    return controller_can_return(c, member) ||
           (!member->gone && controller_member_lives(c, member));
}

static bool is_away(const void *self, const struct cluster_member *member) {
    return !lives_or_returns(self, member);
}

// Whether each bucket has somebody who holds its weights still. When everything died at once,
// nobody needs to be waited for.
static bool servers_live(const struct controller *c) {
    bool live = false;
    return !cluster_is_held(c->cluster, is_away, c, &live, NULL) && live;
}

// It gave no weights to anybody yet, or they are still where it gave them to.
static bool is_alive(const struct controller *c) {
    return c->cluster->stage != CLUSTER_OVER &&
           (c->cluster->member_count > 0 || c->cluster->routes_epoch > 0) && servers_live(c);
}

static int resume_run(struct controller *c, struct error *err) {
    const char *folder = c->config->folder;
    bool saved = run_folder_saved(folder);
    if (is_alive(c)) {
        controller_say(c, "the run in %s goes on: its controller was gone, not its members",
                       folder);
        controller_hear_all(c);
        return controller_let_dead_go(c, err);
    }
    bool finished = c->cluster->finished && !c->config->resume;
    if (finished && c->cluster->stage == CLUSTER_STOPPING && controller_has(c, "DONE")) {
        controller_say(c, "the run in %s is done: its controller was gone while all left", folder);
        c->all_left = true;
        return STATUS_OK;
    }
    if (finished && c->cluster->stage == CLUSTER_OVER)
        return error_set(err, STATUS_CANTCREATE,
                         "%s holds a run that is done; --resume %s goes on with it", folder,
                         folder);
    const char *resume = c->config->resume ? c->config->resume : saved ? folder : NULL;
    if (resume)
        controller_say(c, "going on from %s", resume);
    return begin_anew(c, resume, err);
}

int controller_open_run(struct controller *c, struct error *err) {
    int status = read_state(c, err);
    if (!status && !c->cluster)
        return begin_anew(c, c->config->resume, err);
    if (!status)
        status = follow_state(c, err);
    return status ? status : resume_run(c, err);
}
