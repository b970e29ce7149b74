#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "kernels/kernels.h"
#include "run/best.h"
#include "run/metrics.h"
#include "train/beginning.h"
#include "train/class_weights.h"
#include "train/evaluate.h"
#include "train/events.h"
#include "train/feed.h"
#include "train/frozen.h"
#include "train/health.h"
#include "train/inherit.h"
#include "train/loop.h"
#include "train/weights.h"

#define POLL 0.1 // seconds between two looks at what the caller wishes

enum {
    EPOCHS = 10,  // where nothing is said
    SILENCE = 10, // seconds until a wait for standard input is said
};

struct trainer {
    struct trainer_config *config;
    const struct model *model;
    const struct kernels *kernels;
    struct feed *feed;
    json_t *before; // record of the run that goes on: the settings' texts lie in it
    struct schedule schedule;
    enum home_kind kind;
    struct cut *cut; // NULL: the model is not cut
    struct home *home;
    struct frozen *frozen; // NULL: all layers are passed each time
    struct loader *loader;
    struct loop *loop;
    struct metrics *metrics;
    struct pace pace;
    int threads;
    uint64_t epochs;
    uint64_t number, last;              // the mini-batch to train on next; the one behind the end
    uint64_t first_samples;             // trained on before this process
    uint64_t saved;                     // the mini-batch before which that was done last
    double every_epochs, every_seconds; // checkpoints
    double started, trained, last_save; // seconds
    struct loop_sums reported;          // as of the last "train" line
    struct health health;
    bool examine; // the threads pause for a look at their units
    double reported_trained;
    struct trainer_progress late;
    uint64_t heard;     // samples when a stream was last heard of
    double heard_at;    // when that was; INFINITY: its silence was said
    struct best tested; // the last test
    struct best best;
    uint64_t tested_at; // the clock of the newest test; UINT64_MAX: none is known
    bool owed;          // a stop came before a test that is due here
    bool stop, save, ended;
    bool quit;      // it stops without saving
    bool pause;     // the director has a change
    bool changed;   // since the last checkpoint
    bool impatient; // it ended before its last epoch was over
};

// --- talk -----------------------------------------------------------------------------

static void say_line(const struct trainer *trainer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say_line(const struct trainer *trainer, const char *format, ...) {
    char text[ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    trainer->config->hooks.say(trainer->config->hooks.self, text);
}

static double rate_now(const struct trainer *trainer, uint64_t batch_number) {
    return schedule_rate(&trainer->schedule, pace_epoch(&trainer->pace, batch_number));
}

// A line of metrics.jsonl; what cannot be written never ends a run.
static void report_event(struct trainer *trainer, const char *event, json_t *fields) {
    struct error err = {0};
    if (events_write(trainer->metrics, &trainer->config->checkpoint, event, fields, &err))
        say_line(trainer, "warning: %s; the run goes on", err.text);
}

// NULL: threads share one mini-batch.
static const char *home_name(const struct trainer *trainer) {
    if (trainer->cut)
        return "partitions";
    return trainer->config->settings.sync ? NULL : home_names[trainer->kind];
}

static void report_start(struct trainer *trainer) {
    const struct trainer_config *config = trainer->config;
    const struct settings *settings = &config->settings;
    json_t *fields = json_pack(
        "{s:s, s:s, s:I, s:i, s:I, s:s, s:s?, s:s, s:s, s:I, s:I, s:o}", "command", config->command,
        "version", ADAM_VERSION, "seed", (json_int_t)settings->seed, "threads", trainer->threads,
        "batch", (json_int_t)settings->batch, "mode", settings->sync ? "sync" : "async", "home",
        home_name(trainer), "cpu", trainer->kernels->name, "model", trainer->model->name,
        "parameters", (json_int_t)trainer->model->parameter_count, "connections",
        (json_int_t)trainer->model->connections, "resumed", json_boolean(config->resumed));
    if (trainer->cut)
        json_put(&fields, "in_flight", json_integer(settings->in_flight));
    json_put(&fields, "train", feed_describe(settings->data, trainer->feed->train));
    if (trainer->feed->test)
        json_put(&fields, "test", feed_describe(settings->test, trainer->feed->test));
    report_event(trainer, "start", fields);
}

// Where the run stands, from the sums of the loop.
static void update_position(struct trainer *trainer) {
    struct checkpoint *checkpoint = &trainer->config->checkpoint;
    trainer->number = loop_next(trainer->loop);
    checkpoint->clock = trainer->home->ops->clock(trainer->home);
    checkpoint->samples = trainer->first_samples + loop_sums(trainer->loop).samples;
    checkpoint->epoch = pace_epoch(&trainer->pace, trainer->number);
}

static void report_train(struct trainer *trainer) {
    struct loop_sums now = loop_sums(trainer->loop);
    double samples = (double)(now.samples - trainer->reported.samples);
    double seconds = trainer->trained - trainer->reported_trained;
    if (samples <= 0 || seconds <= 0)
        return;
    update_position(trainer);
    json_t *fields =
        json_pack("{s:o, s:f, s:f, s:f, s:f, s:f}",                                   //
                  "loss", json_number((now.loss - trainer->reported.loss) / samples), //
                  "rate", rate_now(trainer, trainer->number),                         //
                  "images_per_s", samples / seconds,                                  //
                  "connections_per_s",
                  samples / seconds * (double)trainer->model->connections, //
                  "wait",
                  (now.waited - trainer->reported.waited) / (seconds * trainer->threads), //
                  "seconds", seconds);
    report_event(trainer, "train", fields);
    trainer->reported = now;
    trainer->reported_trained = trainer->trained;
}

// What training since the last report was like; stays while nothing is trained.
static void look_back(struct trainer *trainer) {
    struct loop_sums now = loop_sums(trainer->loop);
    double samples = (double)(now.samples - trainer->reported.samples);
    double seconds = trainer->trained - trainer->reported_trained;
    if (samples <= 0 || seconds <= 0)
        return;
    trainer->late.loss = (now.loss - trainer->reported.loss) / samples;
    trainer->late.samples_per_s = samples / seconds;
    trainer->late.waiting = (now.waited - trainer->reported.waited) / (seconds * trainer->threads);
}

static void show_progress(struct trainer *trainer, const char *doing) {
    look_back(trainer);
    struct trainer_progress *now = &trainer->late;
    uint64_t next = loop_next(trainer->loop);
    now->doing = doing;
    now->epochs = trainer->pace.samples > 0 ? (double)trainer->epochs : 0;
    now->samples = trainer->first_samples + loop_sums(trainer->loop).samples;
    now->clock = trainer->home->ops->clock(trainer->home);
    now->epoch = pace_epoch(&trainer->pace, next);
    now->rate = rate_now(trainer, next);
    double left = (now->epochs - now->epoch) * (double)trainer->pace.samples;
    bool known = trainer->pace.samples > 0 && now->samples_per_s > 0;
    now->seconds_left = known ? left / now->samples_per_s : -1;
    trainer->config->hooks.progress(trainer->config->hooks.self, now);
}

// --- testing and saving -----------------------------------------------------------------

// What the caller wishes holds until it is done.
static void hear_wish(struct trainer *trainer) {
    const struct trainer_hooks *hooks = &trainer->config->hooks;
    enum trainer_wish wish = hooks->wish(hooks->self);
    trainer->quit |= wish == TRAINER_QUIT;
    trainer->stop |= wish == TRAINER_STOP || wish == TRAINER_QUIT;
    trainer->save |= wish == TRAINER_SAVE;
    trainer->pause |= wish == TRAINER_PAUSE;
}

static bool patience_is_over(const struct trainer *trainer) {
    int64_t patience = trainer->config->settings.patience;
    return patience > 0 && trainer->best.worse >= (uint64_t)patience;
}

static int stop_testing(void *self, const struct batch *batch, int i, const float *scores,
                        struct error *err) {
    struct trainer *trainer = self;
    (void)scores;
    if (i > 0 || batch->number % 16)
        return STATUS_OK;
    show_progress(trainer, "testing");
    hear_wish(trainer);
    if (!trainer->stop)
        return STATUS_OK;
    return error_set(err, STATUS_STOPPED, "stopped while testing");
}

// The best checkpoint so far is kept, and where none is better for long the run ends. A test that
// is done again, for its figures, does not count twice.
static int take_result(struct trainer *trainer, struct error *err) {
    struct checkpoint *checkpoint = &trainer->config->checkpoint;
    struct best *best = &trainer->best;
    trainer->owed = false;
    if (trainer->tested_at == checkpoint->clock)
        return STATUS_OK;
    trainer->save |= best_take(best, &trainer->tested);
    trainer->tested_at = checkpoint->clock;
    trainer->changed = true;
    if (patience_is_over(trainer) && !trainer->ended) {
        say_line(trainer, "%" PRIi64 " tests were not better than that of epoch %.4g: the run ends",
                 trainer->config->settings.patience, best->epoch);
        trainer->ended = trainer->impatient = true;
    }
    json_put(&checkpoint->run, "best", best_json(best));
    json_put(&checkpoint->run, "tested", json_integer((json_int_t)trainer->tested_at));
    return checkpoint->run ? STATUS_OK : error_nomem(err);
}

static int test_model(struct trainer *trainer, struct error *err) {
    struct tally tally;
    double before = clock_seconds();
    int status = tally_open(&tally, trainer->model, dataset_target_count(trainer->feed->test), err);
    if (status)
        return status;
    const struct evaluate_config how = {
        .model = trainer->model,
        .kernels = trainer->kernels,
        .parameters = checkpoint_tested(&trainer->config->checkpoint),
        .threads = trainer->threads,
        .each = stop_testing,
        .self = trainer,
    };
    status = feed_test(trainer->feed, &trainer->config->settings, &how, &tally, err);
    if (status == STATUS_OK) {
        trainer->tested = events_result(&tally, &trainer->config->checkpoint);
        char text[EVENTS_TEXT];
        events_eval_text(text, trainer->config->checkpoint.epoch, &tally);
        report_event(trainer, "eval", events_eval(&tally, clock_seconds() - before));
        say_line(trainer, "%s", text);
        status = take_result(trainer, err);
    }
    tally_free(&tally);
    return status;
}

// A test that is due. One that a stop prevents is the first thing that the run does when it goes
// on: its checkpoint says so.
static int test_or_owe(struct trainer *trainer, struct error *err) {
    struct checkpoint *checkpoint = &trainer->config->checkpoint;
    int status = trainer->stop ? STATUS_STOPPED : test_model(trainer, err);
    if (status != STATUS_STOPPED)
        return status;
    trainer->owed = true;
    json_put(&checkpoint->run, "owed", json_true());
    return checkpoint->run ? STATUS_OK : error_nomem(err);
}

// Names of a stream are known as far as it has been read.
static int collect_names(struct trainer *trainer, struct error *err) {
    if (!trainer->feed->source)
        return STATUS_OK;
    return loader_names(trainer->loader, &trainer->config->checkpoint.classes, err);
}

// Adds to an error which checkpoint is good.
static int name_last_good(const struct trainer *trainer, struct error *err) {
    struct error why = *err;
    if (trainer->saved == UINT64_MAX)
        return error_set(err, why.status, "%s; nothing was saved yet", why.text);
    return error_set(err, why.status, "%s; the last good checkpoint is %s/latest", why.text,
                     trainer->config->folder);
}

static int save_checkpoint(struct trainer *trainer, struct error *err) {
    const struct trainer_config *config = trainer->config;
    double before = clock_seconds();
    show_progress(trainer, "saving");
    int status = collect_names(trainer, err);
    if (!status)
        status = checkpoint_save(&config->checkpoint, config->folder,
                                 (int)config->settings.keep_last, err);
    trainer->last_save = clock_seconds();
    if (status)
        return name_last_good(trainer, err);
    trainer->saved = trainer->number;
    trainer->changed = false;
    char *path = run_folder_checkpoint(config->folder, config->checkpoint.clock);
    report_event(trainer, "checkpoint",
                 json_pack("{s:s, s:f}", "path", path ? path : config->folder, "seconds",
                           trainer->last_save - before));
    free(path);
    return STATUS_OK;
}

// Unless that is done.
static int save_once(struct trainer *trainer, struct error *err) {
    const struct trainer_director *director = trainer->config->director;
    int status = STATUS_OK;
    if (trainer->saved != trainer->number || trainer->changed)
        status = save_checkpoint(trainer, err);
    if (status)
        return status;
    trainer->save = false;
    if (!director)
        return STATUS_OK;
    uint64_t clock = trainer->config->checkpoint.clock;
    char *path = run_folder_checkpoint(trainer->config->folder, clock);
    if (path)
        director->saved(director->self, path, clock);
    free(path);
    return path ? STATUS_OK : error_nomem(err);
}

// --- what changes meanwhile -------------------------------------------------------------

// Of what may change, clip alone is not for every home.
static int check_home(const struct trainer *trainer, const struct settings *next,
                      const struct optimizer *rule, struct error *err) {
    if (trainer->cut || trainer->kind != HOME_JOINED)
        return STATUS_OK;
    int status = home_joined_check(trainer->model, rule, trainer->threads, (int)next->batch, err);
    if (!status || next->home)
        return status;
    return error_set(err, status,
                     "clip is not for threads that go together over large dense layers, as these "
                     "do unless --home says otherwise; stop the run, and --resume it with --clip");
}

static int check_change(const struct trainer *trainer, const struct settings *next,
                        const struct optimizer *rule, struct error *err) {
    if (next->patience > 0 && !next->test)
        return error_set(err, STATUS_USAGE, "patience needs tests: the run has no test set");
    int status = settings_check_tests(next, err);
    return status ? status : check_home(trainer, next, rule, err);
}

// What cannot be obeyed without the number of samples is refused.
static int read_schedule(const struct trainer *trainer, const struct settings *settings,
                         struct schedule *schedule, struct error *err) {
    int status = trainer->pace.samples > 0 ? STATUS_OK : settings_check_uncounted(settings, err);
    return status ? status : settings_schedule(settings, (double)trainer->epochs, schedule, err);
}

// All of it or nothing. The texts of the settings lie in the record of the run from now on.
static int apply_change(struct trainer *trainer, struct settings *next, struct error *err) {
    struct checkpoint *checkpoint = &trainer->config->checkpoint;
    struct optimizer rule;
    struct schedule schedule;
    double epochs, seconds;
    int status = settings_optimizer(next, &rule, err);
    if (!status)
        status = check_change(trainer, next, &rule, err);
    if (!status)
        status = read_schedule(trainer, next, &schedule, err);
    if (!status)
        status = settings_checkpoint_every(next, &epochs, &seconds, err);
    if (status)
        return status;
    json_t *record = settings_write(next);
    if (!record || json_object_set(checkpoint->run, "settings", record)) {
        json_decref(record);
        return error_nomem(err);
    }
    settings_read(next, record);
    json_decref(record);
    trainer->config->settings = *next;
    checkpoint->optimizer = rule;
    trainer->schedule = schedule;
    trainer->every_epochs = epochs;
    trainer->every_seconds = seconds;
    trainer->changed = true;
    return STATUS_OK;
}

// While no thread trains.
static void take_changes(struct trainer *trainer) {
    const struct trainer_director *director = trainer->config->director;
    struct settings next = trainer->config->settings;
    trainer->pause = false;
    while (director && director->change(director->self, &next)) {
        struct error refused = {0};
        apply_change(trainer, &next, &refused);
        director->changed(director->self, &refused);
        next = trainer->config->settings;
    }
}

// --- stretches --------------------------------------------------------------------------

// The first multiple of `every` epochs, at least a mini-batch, behind mini-batch `number`.
static uint64_t next_multiple(const struct trainer *trainer, double every) {
    if (every <= 0 || trainer->pace.samples == 0)
        return trainer->last;
    every = fmax(every, 1 / (double)pace_per_epoch(&trainer->pace));
    double k = floor(pace_epoch(&trainer->pace, trainer->number) / every + 1e-9);
    uint64_t at;
    do
        at = pace_number(&trainer->pace, ++k * every);
    while (at <= trainer->number);
    return at < trainer->last ? at : trainer->last;
}

static bool save_is_due(const struct trainer *trainer) {
    return trainer->every_seconds > 0 &&
           clock_seconds() - trainer->last_save >= trainer->every_seconds;
}

static void obey_wish(struct trainer *trainer) {
    hear_wish(trainer);
    trainer->save |= save_is_due(trainer);
    if (trainer->stop || trainer->save || trainer->pause)
        loop_pause(trainer->loop);
    // Threads that wait for a pipe would wait for as long as it is silent.
    if (trainer->stop && trainer->feed->source)
        loader_cancel(trainer->loader);
}

// "A wait says whom it waits for": once, when a stream was silent for long.
static void watch_stream(struct trainer *trainer) {
    uint64_t samples = loop_sums(trainer->loop).samples;
    double now = clock_seconds();
    if (samples != trainer->heard || trainer->heard_at == 0) {
        trainer->heard = samples;
        trainer->heard_at = now;
    } else if (trainer->feed->source && now - trainer->heard_at > SILENCE) {
        say_line(trainer, "waiting for standard input: no samples for %d s", SILENCE);
        trainer->heard_at = INFINITY;
    }
}

// 0: samples have targets, and no label to be guessed.
static int classes_of(const struct trainer *trainer) {
    if (trainer->config->settings.targets)
        return 0;
    const struct dataset *train = trainer->feed->train;
    return train ? dataset_classes(train)->count : model_classes(trainer->model);
}

// After warming up: before, the rate is meant to be low.
static void watch_health(struct trainer *trainer) {
    struct loop_sums now = loop_sums(trainer->loop);
    if (pace_epoch(&trainer->pace, loop_next(trainer->loop)) < trainer->config->settings.warmup)
        trainer->health.from = now;
    else
        trainer->examine |=
            health_due(&trainer->health, now, trainer->pace.samples, classes_of(trainer));
    if (trainer->examine)
        loop_pause(trainer->loop);
}

// Says once what is wrong, if anything.
static void warn_about_health(struct trainer *trainer) {
    char text[HEALTH_TEXT];
    const struct health_view view = {
        .feed = trainer->feed,
        .settings = &trainer->config->settings,
        .model = trainer->model,
        .kernels = trainer->kernels,
        .parameters = trainer->config->checkpoint.parameters,
        .rate = rate_now(trainer, trainer->number),
        .classes = classes_of(trainer),
    };
    trainer->examine = false;
    if (health_explain(&trainer->health, &view, text))
        say_line(trainer, "%s", text);
}

// Lets the threads train up to `until`, or until the caller wishes otherwise.
static void train_until(struct trainer *trainer, uint64_t until) {
    double before = clock_seconds(), base = trainer->trained;
    loop_start(trainer->loop, until);
    for (bool there = false; !there;) {
        there = loop_wait(trainer->loop, POLL);
        trainer->trained = base + clock_seconds() - before;
        obey_wish(trainer);
        watch_stream(trainer);
        watch_health(trainer);
        if (trainer->trained - trainer->reported_trained >= trainer->config->settings.metrics_every)
            report_train(trainer);
        show_progress(trainer, NULL);
    }
    if (!trainer->examine || loop_next(trainer->loop) >= until)
        report_train(trainer);
    update_position(trainer);
}

static int report_divergence(struct trainer *trainer, double loss, struct error *err) {
    const struct checkpoint *checkpoint = &trainer->config->checkpoint;
    report_event(trainer, "nan", json_pack("{s:o}", "loss", json_number(loss)));
    report_event(trainer, "stop", json_pack("{s:s}", "reason", "nan"));
    char advice[HEALTH_TEXT];
    health_advise(advice, loop_diverged_input(trainer->loop));
    error_set(err, STATUS_DIVERGED,
              "the loss is no longer finite at mini-batch %" PRIu64
              " (epoch %.4g, rate %g), and the update was refused; %s",
              checkpoint->clock, checkpoint->epoch, rate_now(trainer, trainer->number), advice);
    return name_last_good(trainer, err);
}

static int report_stop(struct trainer *trainer, struct error *err) {
    report_event(trainer, "stop", json_pack("{s:s}", "reason", "signal"));
    return error_set(err, STATUS_STOPPED, "stopped at epoch %.4g, %s; go on with --resume %s",
                     trainer->config->checkpoint.epoch,
                     trainer->quit ? "nothing was saved" : "all is saved", trainer->config->folder);
}

// Where all is done a stop has come too late.
static bool is_stopped(const struct trainer *trainer) {
    return trainer->stop && (!trainer->ended || trainer->owed || trainer->quit);
}

// At its end a stream is known to have been one epoch.
static void measure_stream(struct trainer *trainer) {
    trainer->pace.samples = trainer->config->checkpoint.samples;
    update_position(trainer);
}

// One stretch and what is due behind it.
static int train_stretch(struct trainer *trainer, struct error *err) {
    double loss;
    int status = STATUS_OK;
    uint64_t test_at = next_multiple(trainer, trainer->config->settings.eval_every);
    uint64_t save_at = next_multiple(trainer, trainer->every_epochs);
    train_until(trainer, test_at < save_at ? test_at : save_at);
    if (loop_diverged(trainer->loop, &loss))
        return report_divergence(trainer, loss, err);
    if (trainer->examine)
        warn_about_health(trainer);
    take_changes(trainer);
    bool exhausted = loop_exhausted(trainer->loop) && !trainer->stop;
    trainer->ended = trainer->number >= trainer->last || exhausted;
    if (exhausted && !loader_status(trainer->loader, NULL))
        measure_stream(trainer);
    if (exhausted && trainer->first_samples > 0 && loop_sums(trainer->loop).samples == 0)
        say_line(trainer,
                 "nothing to train: standard input ends before sample %" PRIu64
                 ", up to which all are done",
                 trainer->first_samples + 1);
    bool test_due = trainer->number == test_at || trainer->ended;
    if (trainer->feed->test && test_due && !loader_status(trainer->loader, NULL))
        status = test_or_owe(trainer, err);
    bool save_due = trainer->number == save_at || trainer->ended || trainer->stop || trainer->save;
    if (!status && save_due && !trainer->quit)
        status = save_once(trainer, err);
    return !status && is_stopped(trainer) ? report_stop(trainer, err) : status;
}

// Before more is trained: the test that a stop prevented, and at the end the last one, whose
// figures are to be told.
static int catch_up(struct trainer *trainer, struct error *err) {
    bool due = trainer->owed || trainer->ended;
    int status = STATUS_OK;
    trainer->changed |= trainer->ended; // the settings may be others
    if (trainer->feed->test && due)
        status = test_or_owe(trainer, err);
    if (!status && !trainer->owed && (due || trainer->save))
        status = save_once(trainer, err);
    return !status && is_stopped(trainer) ? report_stop(trainer, err) : status;
}

static int report_done(struct trainer *trainer, struct error *err) {
    const struct checkpoint *checkpoint = &trainer->config->checkpoint;
    json_t *fields = events_last(&trainer->tested);
    json_put(&fields, "seconds", json_real(clock_seconds() - trainer->started));
    if (trainer->frozen)
        json_put(&fields, "frozen_passes",
                 json_integer((json_int_t)frozen_passed(trainer->frozen)));
    int status = events_done(trainer->config->folder, checkpoint, &trainer->tested, err);
    if (status)
        json_decref(fields);
    else
        report_event(trainer, "done", fields);
    return status;
}

// Whether there is nothing to train; said where there is nothing to do at all. A run that was
// killed between its last checkpoint and its end has yet to be ended.
static bool is_done(struct trainer *trainer) {
    bool done = run_folder_is_done(trainer->config->folder);
    trainer->impatient = !done && patience_is_over(trainer) &&
                         trainer->tested_at == trainer->config->checkpoint.clock;
    trainer->ended = trainer->number >= trainer->last || trainer->impatient;
    if (trainer->ended && done)
        say_line(trainer, "nothing to do: all %" PRIu64 " epochs are done; --epochs gives more",
                 trainer->epochs);
    return trainer->ended && done;
}

static int train_epochs(struct trainer *trainer, struct error *err) {
    int status = run_folder_not_done(trainer->config->folder, err);
    if (!status)
        status = catch_up(trainer, err);
    while (!status && !trainer->ended)
        status = train_stretch(trainer, err);
    if (status)
        return status;
    // The loader's threads end here, and say whether they came to the end of the data.
    loop_close(trainer->loop);
    trainer->loop = NULL;
    if (trainer->impatient)
        loader_cancel(trainer->loader);
    status = loader_stop(trainer->loader, err);
    trainer->loader = NULL;
    if (status)
        return error_context(err, "%s", trainer->config->settings.data);
    return report_done(trainer, err);
}

// --- beginning and end ------------------------------------------------------------------

static void set_batch_range(struct trainer *trainer) {
    const struct settings *settings = &trainer->config->settings;
    const struct checkpoint *checkpoint = &trainer->config->checkpoint;
    bool stream = trainer->feed->source != NULL;
    trainer->pace.batch = (uint64_t)settings->batch;
    if (stream) {
        int64_t count = source_count(trainer->feed->source);
        trainer->pace.samples = count > 0 ? (uint64_t)count : 0;
        trainer->epochs = 1;
        // The last mini-batch of a stream may be smaller than others: it is not begun again.
        trainer->number = (checkpoint->samples + trainer->pace.batch - 1) / trainer->pace.batch;
        trainer->last = UINT64_MAX;
    } else {
        trainer->pace.samples = dataset_count(trainer->feed->train);
        trainer->epochs = settings->epochs > 0 ? (uint64_t)settings->epochs : SETTINGS_EPOCHS;
        trainer->number = pace_number(&trainer->pace, checkpoint->epoch);
        trainer->last = trainer->epochs * pace_per_epoch(&trainer->pace);
    }
    trainer->first_samples = checkpoint->samples;
    trainer->saved = trainer->config->resumed ? trainer->number : UINT64_MAX;
}

// Whether a set, "train" or "test", is another one than that of before; said.
static bool is_other_set(const struct trainer *trainer, const char *name, const char *words,
                         const char *path, const json_t *set) {
    const json_t *then = json_object_get(trainer->before, name);
    const char *was = json_string_value(json_object_get(then, "digest"));
    const char *now = json_string_value(json_object_get(set, "digest"));
    bool other = trainer->config->resumed && was && now && strcmp(was, now) != 0;
    if (other)
        say_line(trainer, "note: %s is not the %s set of before (digest %s, was %s)", path, words,
                 now, was);
    return other;
}

// What tests have found before: nothing, where the test set was another.
static void recall_tests(struct trainer *trainer, bool other) {
    const json_t *tested = json_object_get(trainer->before, "tested");
    trainer->best = best_read(json_object_get(trainer->before, "best"));
    trainer->tested_at =
        json_is_integer(tested) ? (uint64_t)json_integer_value(tested) : UINT64_MAX;
    trainer->owed = json_is_true(json_object_get(trainer->before, "owed"));
    if (!other)
        return;
    if (trainer->best.known)
        say_line(trainer, "note: what was best on that test set, epoch %.4g, no longer counts",
                 trainer->best.epoch);
    trainer->best = (struct best){0};
    trainer->tested_at = UINT64_MAX;
}

// What the checkpoints record of this run; the same for the same settings and
// data, so that two runs can be compared byte by byte.
static int record_run(struct trainer *trainer, struct error *err) {
    struct checkpoint *checkpoint = &trainer->config->checkpoint;
    const struct settings *settings = &trainer->config->settings;
    const struct feed *feed = trainer->feed;
    json_t *train = feed_describe(settings->data, feed->train);
    json_t *test = feed->test ? feed_describe(settings->test, feed->test) : NULL;
    trainer->before = checkpoint->run;
    is_other_set(trainer, "train", "training", settings->data, train);
    recall_tests(trainer, is_other_set(trainer, "test", "test", settings->test, test));
    checkpoint->run = json_pack("{s:o, s:o}", "settings", settings_write(settings), "train", train);
    if (feed->test)
        json_put(&checkpoint->run, "test", test);
    if (trainer->best.known)
        json_put(&checkpoint->run, "best", best_json(&trainer->best));
    if (trainer->tested_at != UINT64_MAX)
        json_put(&checkpoint->run, "tested", json_integer((json_int_t)trainer->tested_at));
    return checkpoint->run ? STATUS_OK : error_nomem(err);
}

static int keep_names(struct trainer *trainer, struct error *err) {
    struct checkpoint *checkpoint = &trainer->config->checkpoint;
    const struct classes *names =
        trainer->feed->train ? dataset_classes(trainer->feed->train) : NULL;
    int status = STATUS_OK, label;
    for (int i = 0; names && !status && i < names->count; i++)
        status = classes_label(&checkpoint->classes, names->names[i], &label, err);
    return status ? status : checkpoint_check_names(&checkpoint->classes, err);
}

static int open_feed(struct trainer *trainer, struct error *err) {
    const struct trainer_config *config = trainer->config;
    int status = settings_check_texts(&config->settings, err);
    if (!status)
        status = settings_check_mixing(&config->settings, err);
    if (!status)
        status = settings_check_targets(&config->settings, err);
    if (!status)
        status = settings_check_tests(&config->settings, err);
    if (!status)
        status = settings_check_partitions(&config->settings, err);
    if (!status)
        status = feed_open(&trainer->feed, &config->settings, trainer->model,
                           &config->checkpoint.classes, &config->data, err);
    if (!status)
        status = keep_names(trainer, err);
    if (!status)
        status = record_run(trainer, err);
    if (status)
        return status;
    set_batch_range(trainer);
    return read_schedule(trainer, &config->settings, &trainer->schedule, err);
}

static int weigh_classes(struct trainer *trainer, struct error *err) {
    const struct settings *settings = &trainer->config->settings;
    struct checkpoint *checkpoint = &trainer->config->checkpoint;
    if (!settings->class_weights)
        return STATUS_OK;
    if (!trainer->feed->train)
        return error_set(err, STATUS_USAGE,
                         "--class-weights needs the whole training set before training begins: "
                         "--spool FILE keeps standard input");
    int status =
        class_weights_put(&checkpoint->model, settings->class_weights, trainer->feed->train, err);
    trainer->model = checkpoint->model;
    return status;
}

static int open_run_folder(struct trainer *trainer, struct error *err) {
    const struct trainer_config *config = trainer->config;
    if (config->resumed)
        return STATUS_OK;
    int status = run_folder_make(config->folder, err);
    return status ? status : beginning_write(&config->checkpoint, config->folder, err);
}

static int open_metrics(struct trainer *trainer, struct error *err) {
    char *path = NULL;
    if (asprintf(&path, "%s/metrics.jsonl", trainer->config->folder) < 0)
        return error_nomem(err);
    int status = metrics_open(&trainer->metrics, path, "worker", 0, false, err);
    free(path);
    return status;
}

static bool is_known(const void *frozen, uint32_t index) {
    return frozen_knows(frozen, index);
}

// What makes a sample another one in each epoch; NULL: nothing.
static const char *what_changes(const struct trainer *trainer) {
    const struct settings *settings = &trainer->config->settings;
    const struct ops *augment = trainer->feed->augment;
    return augment && ops_random(augment) ? "--ops"
           : settings->mixup > 0          ? "--mixup"
           : settings->cutmix > 0         ? "--cutmix"
                                          : NULL;
}

static void say_frozen(const struct trainer *trainer, const char *changes) {
    char text[FROZEN_TEXT];
    frozen_text(text, trainer->frozen, changes);
    say_line(trainer, "%s", text);
}

// Partitions pass all layers each time.
static int open_cut(struct trainer *trainer, struct error *err) {
    const struct settings *settings = &trainer->config->settings;
    if (settings->partitions < 2)
        return STATUS_OK;
    trainer->threads = (int)settings->partitions;
    return cut_open(&trainer->cut, trainer->model, (int)settings->partitions, (int)settings->batch,
                    err);
}

static void say_cut(const struct trainer *trainer) {
    const struct settings *settings = &trainer->config->settings;
    say_line(trainer,
             "%" PRIi64 " partitions of the model, %" PRIi64
             " %s in flight; expected speed-up %.2f",
             settings->partitions, settings->in_flight,
             settings->sync             ? "parts of a mini-batch"
             : settings->in_flight == 1 ? "mini-batch"
                                        : "mini-batches",
             cut_speed_up(trainer->cut));
}

// Frozen layers give what they gave where their inputs are what they were.
static int open_frozen(struct trainer *trainer, struct error *err) {
    struct feed *feed = trainer->feed;
    const char *changes = what_changes(trainer);
    const struct frozen_config config = {
        .model = trainer->model,
        .kernels = trainer->kernels,
        .samples = feed->train ? dataset_count(feed->train) : 0,
        .memory = trainer->config->settings.frozen_memory,
    };
    int status =
        feed->train && !trainer->cut ? frozen_open(&trainer->frozen, &config, err) : STATUS_OK;
    if (status || !trainer->frozen)
        return status;
    say_frozen(trainer, changes);
    if (changes) {
        frozen_close(trainer->frozen);
        trainer->frozen = NULL;
        return STATUS_OK;
    }
    feed->known = is_known;
    feed->known_self = trainer->frozen;
    return STATUS_OK;
}

static int open_loop(struct trainer *trainer, struct error *err) {
    struct checkpoint *checkpoint = &trainer->config->checkpoint;
    const struct settings *settings = &trainer->config->settings;
    const struct home_config home = {
        .model = trainer->model,
        .optimizer = &checkpoint->optimizer,
        .kernels = trainer->kernels,
        .parameters = checkpoint->parameters,
        .state = checkpoint->state,
        .clock = checkpoint->clock,
        .since = (uint64_t)settings->state_since,
        .threads = settings->sync ? 1 : trainer->threads,
        .batch = (int)settings->batch,
    };
    int status = trainer->cut ? home_partitions(&trainer->home, &home, trainer->cut, err)
                              : home_open(&trainer->home, trainer->kind, &home, err);
    if (!status)
        status = feed_train(trainer->feed, settings, trainer->model, trainer->epochs,
                            trainer->number, trainer->threads, &trainer->loader, err);
    if (status)
        return status;
    const struct loop_config config = {
        .model = trainer->frozen ? frozen_above(trainer->frozen) : trainer->model,
        .kernels = trainer->kernels,
        .optimizer = &checkpoint->optimizer,
        .schedule = &trainer->schedule,
        .home = trainer->home,
        .supply = loader_supply(trainer->loader),
        // Threads that wait for a silent pipe look up now and then: they may be to pause.
        .patience = trainer->feed->source ? 1 : SUPPLY_PATIENT,
        .pace = trainer->pace,
        .first = trainer->number,
        .threads = trainer->threads,
        .batch = (int)settings->batch,
        .sync = settings->sync,
        .seed = (uint64_t)settings->seed,
        .mix = mix_of(settings, trainer->model),
        .frozen = trainer->frozen,
        .cut = trainer->cut,
        .in_flight = (int)settings->in_flight,
    };
    return loop_open(&trainer->loop, &config, err);
}

static int open_run(struct trainer *trainer, struct error *err) {
    struct settings *settings = &trainer->config->settings;
    trainer->started = trainer->last_save = clock_seconds();
    trainer->config->checkpoint.command = trainer->config->command;
    trainer->model = trainer->config->checkpoint.model;
    trainer->kernels = kernels_best();
    trainer->threads = settings->threads > 0 ? (int)settings->threads : cpu_count();
    int status = model_check_learns(trainer->model, err);
    if (!status)
        status = settings_checkpoint_every(settings, &trainer->every_epochs,
                                           &trainer->every_seconds, err);
    if (!status)
        status = weights_rule(&trainer->config->checkpoint, settings, err);
    if (!status)
        status = home_choose(&trainer->kind, settings, trainer->model,
                             &trainer->config->checkpoint.optimizer,
                             settings->sync ? 1 : trainer->threads, err);
    if (!status)
        status = open_feed(trainer, err);
    if (!status && trainer->config->weigh)
        status = weigh_classes(trainer, err);
    if (!status)
        status = weights_make(&trainer->config->checkpoint, trainer->model, err);
    if (!status && settings->init_from && !trainer->config->resumed)
        status = inherit_weights(&trainer->config->checkpoint, settings->init_from,
                                 trainer->config->hooks.say, trainer->config->hooks.self, err);
    if (!status && !trainer->config->resumed)
        weights_begin_average(&trainer->config->checkpoint);
    if (!status)
        status = open_run_folder(trainer, err);
    if (!status)
        status = open_metrics(trainer, err);
    if (!status)
        status = open_cut(trainer, err);
    if (!status)
        status = open_frozen(trainer, err);
    if (!status)
        status = open_loop(trainer, err);
    return status;
}

static void close_run(struct trainer *trainer) {
    loop_close(trainer->loop);
    metrics_close(trainer->metrics);
    if (trainer->loader && trainer->feed->source && trainer->stop) {
        loader_abandon(trainer->loader);
        mem_abandon(trainer->feed); // which it reads
    } else {
        loader_stop(trainer->loader, NULL);
        feed_close(trainer->feed);
    }
    if (trainer->home)
        trainer->home->ops->close(trainer->home);
    frozen_close(trainer->frozen);
    cut_close(trainer->cut);
    checkpoint_free(&trainer->config->checkpoint);
    json_decref(trainer->before);
}

int trainer_run(struct trainer_config *config, struct error *err) {
    struct trainer trainer = {.config = config};
    int status = open_run(&trainer, err);
    if (!status && !is_done(&trainer)) {
        char text[HEALTH_TEXT];
        report_start(&trainer);
        if (trainer.feed->train && classes_of(&trainer) > 0 &&
            health_classes(text, trainer.model, classes_of(&trainer)))
            say_line(&trainer, "%s", text);
        if (trainer.cut)
            say_cut(&trainer);
        else if (!config->settings.sync && trainer.threads > 1)
            say_line(&trainer, "%s",
                     home_text((char[128]){0}, trainer.kind, trainer.model, trainer.threads,
                               (int)config->settings.batch));
        if (config->director)
            config->director->begun(config->director->self);
        status = train_epochs(&trainer, err);
        if (status && status != STATUS_STOPPED && status != STATUS_DIVERGED)
            report_event(&trainer, "stop",
                         json_pack("{s:s, s:s}", "reason", "error", "error", err->text));
    }
    close_run(&trainer);
    return status;
}
