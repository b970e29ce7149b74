#include "report/history.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/io.h"
#include "core/mem.h"

enum { METRICS_VERSION = 1 };

// Where the reader is in time: sessions follow each other without the gaps.
struct history_reader {
    struct history *history;
    double session_began; // t of the last start event
    double before;        // seconds of the sessions before it
    double time;          // seconds of training at the last line
    double step, epoch;
    bool started; // and nothing was told since then
    bool many;    // the controller's lines tell where the run is; workers only how they do
};

static void curve_free(struct curve *curve) {
    free(curve->step);
    free(curve->epoch);
    free(curve->time);
    free(curve->value);
    *curve = (struct curve){0};
}

static bool grow_column(double **column, size_t capacity) {
    double *more = mem_resize(*column, capacity, sizeof **column);
    if (more)
        *column = more;
    return more != NULL;
}

static int curve_add(struct curve *curve, const struct history_reader *at, double value,
                     struct error *err) {
    if (curve->n == curve->capacity) {
        size_t capacity = curve->capacity ? 2 * curve->capacity : 64;
        if (!grow_column(&curve->step, capacity) || !grow_column(&curve->epoch, capacity) ||
            !grow_column(&curve->time, capacity) || !grow_column(&curve->value, capacity))
            return error_nomem(err);
        curve->capacity = capacity;
    }
    size_t i = curve->n++;
    curve->step[i] = at->step, curve->epoch[i] = at->epoch;
    curve->time[i] = at->time, curve->value[i] = value;
    return STATUS_OK;
}

static void curve_cut(struct curve *curve, double epoch) {
    while (curve->n > 0 && curve->epoch[curve->n - 1] > epoch)
        curve->n--;
}

// Forgets what lies behind: a resumed run does it again, its learners with new ranks.
static void cut_behind(struct history *history, double epoch) {
    for (size_t i = 0; i < HISTORY_CURVES; i++)
        curve_cut(&history->curves[i], epoch);
    for (size_t i = 0; i < history->learner_count; i++) {
        curve_cut(&history->learners[i].loss, epoch);
        history->learners[i].speed = 0;
    }
}

// A member that is a number; NAN when it is missing or null (not finite).
static double number_member(const json_t *line, const char *name) {
    const json_t *value = json_object_get(line, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

// Which members of which event make a curve.
static const struct source_member {
    const char *event, *name;
} members[HISTORY_CURVES] = {
    [CURVE_LOSS] = {"train", "loss"},
    [CURVE_RATE] = {"train", "rate"},
    [CURVE_SPEED] = {"train", "images_per_s"},
    [CURVE_WAIT] = {"train", "wait"},
    [CURVE_TEST_LOSS] = {"eval", "loss"},
    [CURVE_TOP1] = {"eval", "top1"},
    [CURVE_TOP5] = {"eval", "top5"},
    [CURVE_MAP] = {"eval", "map"},
    [CURVE_R2] = {"eval", "r2"},
    [CURVE_STALENESS] = {"ps", "staleness"},
};

static struct learner *learner_of(struct history *history, int64_t rank) {
    for (size_t i = 0; i < history->learner_count; i++)
        if (history->learners[i].rank == rank)
            return &history->learners[i];
    struct learner *more = mem_resize(history->learners, history->learner_count + 1, sizeof *more);
    if (!more)
        return NULL;
    history->learners = more;
    more[history->learner_count] = (struct learner){.rank = rank};
    return &more[history->learner_count++];
}

// The mean of what the learners told last.
static double mean_loss(const struct history *history) {
    double sum = 0, n = 0;
    for (size_t i = 0; i < history->learner_count; i++)
        if (history->learners[i].loss.n > 0) {
            sum += curve_last(&history->learners[i].loss);
            n++;
        }
    return sum / n;
}

static double all_batches(const struct history *history) {
    double sum = 0;
    for (size_t i = 0; i < history->learner_count; i++)
        sum += history->learners[i].earlier + history->learners[i].batches;
    return sum;
}

static double all_speed(const struct history *history) {
    double sum = 0;
    for (size_t i = 0; i < history->learner_count; i++)
        sum += history->learners[i].speed;
    return sum;
}

// Puts the line into its learner's curves, and what all learners do in its place.
static int add_learner(struct history_reader *r, const json_t *line, double value[HISTORY_CURVES],
                       struct error *err) {
    struct learner *learner =
        learner_of(r->history, json_integer_value(json_object_get(line, "rank")));
    int status = learner ? STATUS_OK : error_nomem(err);
    if (!status && isfinite(value[CURVE_LOSS]))
        status = curve_add(&learner->loss, r, value[CURVE_LOSS], err);
    if (status)
        return status;
    double step = number_member(line, "step");
    learner->batches = isfinite(step) ? fmax(learner->batches, step) : learner->batches;
    learner->speed = isfinite(value[CURVE_SPEED]) ? value[CURVE_SPEED] : learner->speed;
    value[CURVE_LOSS] = mean_loss(r->history);
    value[CURVE_SPEED] = all_speed(r->history);
    return STATUS_OK;
}

// A process of its own, which counts its mini-batches from 0.
static int start_learner(struct history_reader *r, const json_t *line, struct error *err) {
    struct learner *learner =
        learner_of(r->history, json_integer_value(json_object_get(line, "rank")));
    if (!learner)
        return error_nomem(err);
    learner->earlier += learner->batches;
    learner->batches = 0;
    return STATUS_OK;
}

static int add_curve_values(struct history_reader *r, const char *event, const json_t *line,
                            struct error *err) {
    int status = STATUS_OK;
    double value[HISTORY_CURVES];
    for (size_t i = 0; i < HISTORY_CURVES; i++)
        value[i] = strcmp(event, members[i].event) ? NAN : number_member(line, members[i].name);
    if (!json_array_size(json_object_get(line, "staleness_counts")))
        value[CURVE_STALENESS] = NAN; // nothing was applied
    if (r->many && !strcmp(event, "train"))
        status = add_learner(r, line, value, err);
    for (size_t i = 0; i < HISTORY_CURVES && status == STATUS_OK; i++)
        if (isfinite(value[i]))
            status = curve_add(&r->history->curves[i], r, value[i], err);
    return status;
}

// Where the run is, by the line of one that knows.
static void advance_by_line(struct history_reader *r, const json_t *line) {
    double step = number_member(line, "step"), samples = number_member(line, "samples");
    double epoch = number_member(line, "epoch");
    if (r->started && isfinite(epoch)) {
        cut_behind(r->history, epoch);
        r->epoch = epoch;
        r->started = false;
    }
    r->step = isfinite(step) ? step : r->step;
    r->history->samples = isfinite(samples) ? samples : r->history->samples;
}

// A start that does not say where the run goes on leaves that to the first line behind it.
static int add_start(struct history_reader *r, const json_t *line, struct error *err) {
    r->before = r->time;
    if (json_array_size(r->history->starts) == 0)
        r->history->began = r->history->ended = number_member(line, "t");
    r->session_began = number_member(line, "t");
    r->history->end = HISTORY_RUNNING;
    r->started = true;
    advance_by_line(r, line);
    return json_array_append(r->history->starts, (json_t *)line) ? error_nomem(err) : STATUS_OK;
}

static void end_with(struct history *history, enum history_end end, const char *reason) {
    history->end = end;
    snprintf(history->reason, sizeof history->reason, "%s", reason ? reason : "");
}

// Moves the reader to the line's place in the run.
static void move_to_line(struct history_reader *r, const json_t *line, bool leads) {
    double t = number_member(line, "t"), epoch = number_member(line, "epoch");
    if (isfinite(t))
        r->history->ended = t;
    if (leads || r->started)
        advance_by_line(r, line);
    r->epoch = isfinite(epoch) ? fmax(r->epoch, epoch) : r->epoch;
    if (isfinite(t) && isfinite(r->session_began))
        r->time = fmax(r->time, r->before + t - r->session_began);
}

static int add_metrics_line(struct history_reader *r, const json_t *line, struct error *err) {
    const char *event = json_string_value(json_object_get(line, "event"));
    if (!json_is_object(line) || !event)
        return error_set(err, STATUS_DATA, "not a metrics line: it has no \"event\"");
    if (number_member(line, "v") != METRICS_VERSION)
        return error_set(err, STATUS_DATA, "metrics of another version than %d", METRICS_VERSION);
    const char *role = json_string_value(json_object_get(line, "role"));
    bool controls = role && !strcmp(role, "controller");
    r->many |= controls;
    bool leads = controls || !r->many;
    if (!strcmp(event, "start"))
        return leads                             ? add_start(r, line, err)
               : role && !strcmp(role, "worker") ? start_learner(r, line, err)
                                                 : STATUS_OK;
    move_to_line(r, line, leads);
    if (!strcmp(event, "done"))
        end_with(r->history, HISTORY_DONE, NULL);
    if (!strcmp(event, "nan"))
        end_with(r->history, HISTORY_DIVERGED, NULL);
    if (!strcmp(event, "stop") && leads && r->history->end != HISTORY_DIVERGED)
        end_with(r->history, HISTORY_STOPPED, json_string_value(json_object_get(line, "reason")));
    return add_curve_values(r, event, line, err);
}

static int read_metrics_lines(struct history_reader *r, FILE *file, const char *path,
                              struct error *err) {
    char *text = NULL;
    size_t capacity = 0;
    ssize_t length;
    int status = STATUS_OK;
    for (long number_of = 1; status == STATUS_OK; number_of++) {
        status = io_line(file, path, &text, &capacity, &length, err);
        if (status != STATUS_OK || length <= 0 || text[length - 1] != '\n') // or in the making
            break;
        json_t *line = NULL;
        status = json_read(&line, text, (size_t)length, err);
        if (status == STATUS_DATA && number_of == 1) {
            error_set(err, STATUS_DATA, "%s is neither the folder of a run nor its metrics.jsonl",
                      path);
            break;
        }
        if (status == STATUS_OK)
            status = add_metrics_line(r, line, err);
        if (status != STATUS_OK)
            error_context(err, "%s:%ld", path, number_of);
        json_decref(line);
    }
    free(text);
    return status;
}

static char *name_of_run(const char *path) {
    char *name = mem_string(path);
    size_t n = name ? strlen(name) : 0;
    while (n > 1 && name[n - 1] == '/')
        name[--n] = 0;
    return name;
}

// The last part of a path that is not "." or ".." or "a/..".
static char *title_of_run(const char *name) {
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    if (strcmp(last, ".") != 0 && strcmp(last, "..") != 0)
        return mem_string(name);
    char *whole = realpath(name, NULL), *title = NULL;
    if (whole)
        title = mem_string(strrchr(whole, '/') + 1);
    free(whole);
    return title ? title : mem_string(name);
}

static char *metrics_path(const char *path) {
    struct stat about;
    char *whole = NULL;
    if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode))
        return mem_string(path);
    return asprintf(&whole, "%s/metrics.jsonl", path) < 0 ? NULL : whole;
}

static int read_metrics_file(struct history *history, const char *path, struct error *err) {
    FILE *file = fopen(path, "re");
    if (!file)
        return error_errno(err, STATUS_NOINPUT, "cannot read %s", path);
    struct history_reader r = {.history = history, .session_began = NAN};
    int status = read_metrics_lines(&r, file, path, err);
    fclose(file);
    history->batches = r.many ? all_batches(history) : r.step;
    history->step = r.step, history->epoch = r.epoch, history->seconds = r.time;
    if (status == STATUS_OK && json_array_size(history->starts) == 0)
        return error_set(err, STATUS_DATA, "%s: no run has started there", path);
    return status;
}

int history_read(struct history *history, const char *path, struct error *err) {
    *history = (struct history){.name = name_of_run(path), .starts = json_array()};
    history->began = history->ended = NAN;
    char *file = history->name ? metrics_path(history->name) : NULL;
    history->title = history->name ? title_of_run(history->name) : NULL;
    int status = file && history->title && history->starts ? read_metrics_file(history, file, err)
                                                           : error_nomem(err);
    free(file);
    if (status != STATUS_OK)
        history_free(history);
    return status;
}

void history_free(struct history *history) {
    for (size_t i = 0; i < HISTORY_CURVES; i++)
        curve_free(&history->curves[i]);
    for (size_t i = 0; i < history->learner_count; i++)
        curve_free(&history->learners[i].loss);
    free(history->learners);
    json_decref(history->starts);
    free(history->title);
    free(history->name);
    *history = (struct history){0};
}

// Whether the first line of the metrics is there, and is one of metrics.
static bool begins_as_metrics(const char *path) {
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t capacity = 0;
    ssize_t length = 0;
    json_t *line = NULL;
    bool read = file && !io_line(file, path, &text, &capacity, &length, NULL) && length > 0 &&
                !json_read(&line, text, (size_t)length, NULL);
    bool begins = read && json_is_string(json_object_get(line, "event"));
    json_decref(line);
    free(text);
    if (file)
        fclose(file);
    return begins;
}

// Whether there is something, but no run. What cannot be read may be one.
static bool is_something_else(const char *path) {
    struct stat about;
    char *file = stat(path, &about) ? NULL : metrics_path(path);
    bool else_there = file && (access(file, R_OK) ? errno == ENOENT : !begins_as_metrics(file));
    free(file);
    return else_there;
}

int history_read_all(struct history **runs, char *const *paths, size_t *count,
                     void (*say)(void *self, const char *text), void *self, struct error *err) {
    const size_t all = *count;
    struct error why = {0};
    int status = STATUS_OK, skipped = STATUS_OK;
    *count = 0;
    *runs = mem_zeroed(all, sizeof **runs);
    if (!*runs)
        return error_nomem(err);
    for (size_t i = 0; i < all && status == STATUS_OK; i++) {
        status = history_read(&(*runs)[*count], paths[i], &why);
        *count += status == STATUS_OK;
        if (status != STATUS_OK && all > 1 && is_something_else(paths[i])) {
            error_context(&why, "skipped");
            say(self, why.text);
            skipped = status;
            status = STATUS_OK;
        }
    }
    if (status == STATUS_OK && *count == 0)
        status = error_set(&why, skipped, "none of them is a run");
    if (status == STATUS_OK)
        return STATUS_OK;
    if (err)
        *err = why;
    history_free_all(*runs, *count);
    *runs = NULL;
    return status;
}

void history_free_all(struct history *runs, size_t count) {
    for (size_t i = 0; runs && i < count; i++)
        history_free(&runs[i]);
    free(runs);
}

const json_t *history_start(const struct history *history) {
    size_t n = json_array_size(history->starts);
    return n ? json_array_get(history->starts, n - 1) : NULL;
}

// The first value that none of the others exceeds, when all are multiplied by `sign`.
static double curve_extreme(const struct curve *curve, double sign, size_t *at) {
    double best = NAN;
    for (size_t i = 0; i < curve->n; i++)
        if (!(sign * curve->value[i] <= sign * best)) {
            best = curve->value[i];
            if (at)
                *at = i;
        }
    return best;
}

double curve_best(const struct curve *curve, size_t *at) {
    return curve_extreme(curve, 1, at);
}

double curve_least(const struct curve *curve, size_t *at) {
    return curve_extreme(curve, -1, at);
}

double curve_last(const struct curve *curve) {
    return curve->n ? curve->value[curve->n - 1] : NAN;
}
