#include "train/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "train/beginning.h"
#include "train/evaluate.h"
#include "train/events.h"
#include "train/feed.h"
#include "train/health.h"
#include "train/loop.h"
#include "train/metrics.h"
#include "train/weights.h"

#define POLL 0.1 // seconds between two looks at what the caller wishes

enum {
    EPOCHS = 10,  // where nothing is said
    SILENCE = 10, // seconds until a wait for standard input is said
};

struct run {
    struct run_config *config;
    const struct model *model;
    const struct kernels *kernels;
    struct feed *feed;
    json_t *before; // record of the run that goes on: the settings' texts lie in it
    struct schedule schedule;
    enum home_kind kind;
    struct home *home;
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
    struct run_progress late;
    uint64_t heard;  // samples when a stream was last heard of
    double heard_at; // when that was; INFINITY: its silence was said
    double top1;     // below 0: never tested
    bool stop, save, ended;
};

// --- talk -----------------------------------------------------------------------------

static void say(const struct run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(const struct run *run, const char *format, ...) {
    char text[ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    run->config->hooks.say(run->config->hooks.self, text);
}

static double rate_now(const struct run *run, uint64_t batch_number) {
    return schedule_rate(&run->schedule, pace_epoch(&run->pace, batch_number));
}

// A line of metrics.jsonl; what cannot be written never ends a run.
static void report(struct run *run, const char *event, json_t *fields) {
    struct error err = {0};
    if (events_write(run->metrics, &run->config->checkpoint, event, fields, &err))
        say(run, "warning: %s; the run goes on", err.text);
}

static void report_start(struct run *run) {
    const struct run_config *config = run->config;
    const struct settings *settings = &config->settings;
    json_t *fields = json_pack(
        "{s:s, s:s, s:I, s:i, s:I, s:s, s:s?, s:s, s:s, s:I, s:I, s:o}", "command", config->command,
        "version", ADAM_VERSION, "seed", (json_int_t)settings->seed, "threads", run->threads,
        "batch", (json_int_t)settings->batch, "mode", settings->sync ? "sync" : "async", "home",
        settings->sync ? NULL : home_names[run->kind], "cpu", run->kernels->name, "model",
        run->model->name, "parameters", (json_int_t)run->model->parameter_count, "connections",
        (json_int_t)run->model->connections, "resumed", json_boolean(config->resumed));
    json_object_set_new(fields, "train", feed_describe(settings->data, run->feed->train));
    if (run->feed->test)
        json_object_set_new(fields, "test", feed_describe(settings->test, run->feed->test));
    struct error err = {0};
    if (metrics_write(run->metrics, "start", fields, &err))
        say(run, "warning: %s; the run goes on", err.text);
}

// Where the run stands, from the sums of the loop.
static void locate(struct run *run) {
    struct checkpoint *checkpoint = &run->config->checkpoint;
    run->number = loop_next(run->loop);
    checkpoint->clock = run->home->ops->clock(run->home);
    checkpoint->samples = run->first_samples + loop_sums(run->loop).samples;
    checkpoint->epoch = pace_epoch(&run->pace, run->number);
}

static void report_train(struct run *run) {
    struct loop_sums now = loop_sums(run->loop);
    double samples = (double)(now.samples - run->reported.samples);
    double seconds = run->trained - run->reported_trained;
    if (samples <= 0 || seconds <= 0)
        return;
    locate(run);
    json_t *fields = json_pack("{s:o, s:f, s:f, s:f, s:f, s:f}",                                 //
                               "loss", events_number((now.loss - run->reported.loss) / samples), //
                               "rate", rate_now(run, run->number),                               //
                               "images_per_s", samples / seconds,                                //
                               "connections_per_s",
                               samples / seconds * (double)run->model->connections, //
                               "wait",
                               (now.waited - run->reported.waited) / (seconds * run->threads), //
                               "seconds", seconds);
    report(run, "train", fields);
    run->reported = now;
    run->reported_trained = run->trained;
}

// What training since the last report was like; stays while nothing is trained.
static void look_back(struct run *run) {
    struct loop_sums now = loop_sums(run->loop);
    double samples = (double)(now.samples - run->reported.samples);
    double seconds = run->trained - run->reported_trained;
    if (samples <= 0 || seconds <= 0)
        return;
    run->late.loss = (now.loss - run->reported.loss) / samples;
    run->late.samples_per_s = samples / seconds;
    run->late.waiting = (now.waited - run->reported.waited) / (seconds * run->threads);
}

static void show_progress(struct run *run, const char *doing) {
    look_back(run);
    struct run_progress *now = &run->late;
    uint64_t next = loop_next(run->loop);
    now->doing = doing;
    now->epochs = run->pace.samples > 0 ? (double)run->epochs : 0;
    now->samples = run->first_samples + loop_sums(run->loop).samples;
    now->epoch = pace_epoch(&run->pace, next);
    now->rate = rate_now(run, next);
    double left = (now->epochs - now->epoch) * (double)run->pace.samples;
    bool known = run->pace.samples > 0 && now->samples_per_s > 0;
    now->seconds_left = known ? left / now->samples_per_s : -1;
    run->config->hooks.progress(run->config->hooks.self, now);
}

// --- testing and saving -----------------------------------------------------------------

static int stop_testing(void *self, const struct batch *batch, int i, const float *scores,
                        struct error *err) {
    struct run *run = self;
    (void)scores;
    if (i > 0 || batch->number % 16)
        return STATUS_OK;
    show_progress(run, "testing");
    if (run->config->hooks.wish(run->config->hooks.self) != RUN_STOP)
        return STATUS_OK;
    return error_set(err, STATUS_STOPPED, "stopped while testing");
}

static int test(struct run *run, struct error *err) {
    struct tally tally;
    double before = clock_seconds();
    int status = tally_init(&tally, model_classes(run->model), err);
    if (status)
        return status;
    status =
        feed_test(run->feed, &run->config->settings, run->model, run->kernels,
                  run->config->checkpoint.parameters, run->threads, &tally, stop_testing, run, err);
    if (status == STATUS_OK) {
        run->top1 = tally_top1(&tally);
        char text[EVENTS_TEXT];
        events_eval_text(text, run->config->checkpoint.epoch, &tally);
        report(run, "eval", events_eval(&tally, clock_seconds() - before));
        say(run, "%s", text);
    }
    tally_free(&tally);
    if (status != STATUS_STOPPED)
        return status;
    run->stop = true;
    return STATUS_OK;
}

// Names of a stream are known as far as it has been read.
static int collect_names(struct run *run, struct error *err) {
    if (!run->feed->source)
        return STATUS_OK;
    return loader_names(run->loader, &run->config->checkpoint.classes, err);
}

// Adds to an error which checkpoint is good.
static int name_last_good(const struct run *run, struct error *err) {
    struct error why = *err;
    if (run->saved == UINT64_MAX)
        return error_set(err, why.status, "%s; nothing was saved yet", why.text);
    return error_set(err, why.status, "%s; the last good checkpoint is %s/latest", why.text,
                     run->config->folder);
}

static int save(struct run *run, struct error *err) {
    const struct run_config *config = run->config;
    double before = clock_seconds();
    show_progress(run, "saving");
    int status = collect_names(run, err);
    if (!status)
        status = checkpoint_save(&config->checkpoint, config->folder,
                                 (int)config->settings.keep_last, err);
    run->last_save = clock_seconds();
    run->save = false;
    if (status)
        return name_last_good(run, err);
    run->saved = run->number;
    char *path = run_folder_checkpoint(config->folder, config->checkpoint.clock);
    report(run, "checkpoint",
           json_pack("{s:s, s:f}", "path", path ? path : config->folder, "seconds",
                     run->last_save - before));
    free(path);
    return STATUS_OK;
}

// --- stretches --------------------------------------------------------------------------

// The first multiple of `every` epochs, at least a mini-batch, behind mini-batch `number`.
static uint64_t next_multiple(const struct run *run, double every) {
    if (every <= 0 || run->pace.samples == 0)
        return run->last;
    every = fmax(every, 1 / (double)pace_per_epoch(&run->pace));
    double k = floor(pace_epoch(&run->pace, run->number) / every + 1e-9);
    uint64_t at;
    do
        at = pace_number(&run->pace, ++k * every);
    while (at <= run->number);
    return at < run->last ? at : run->last;
}

static bool save_is_due(const struct run *run) {
    return run->every_seconds > 0 && clock_seconds() - run->last_save >= run->every_seconds;
}

static void obey(struct run *run) {
    const struct run_hooks *hooks = &run->config->hooks;
    enum run_wish wish = hooks->wish(hooks->self);
    run->stop |= wish == RUN_STOP;
    run->save |= wish == RUN_SAVE || save_is_due(run);
    if (run->stop || run->save)
        loop_pause(run->loop);
    // Threads that wait for a pipe would wait for as long as it is silent.
    if (run->stop && run->feed->source)
        loader_cancel(run->loader);
}

// "A wait says whom it waits for": once, when a stream was silent for long.
static void watch_stream(struct run *run) {
    uint64_t samples = loop_sums(run->loop).samples;
    double now = clock_seconds();
    if (samples != run->heard || run->heard_at == 0) {
        run->heard = samples;
        run->heard_at = now;
    } else if (run->feed->source && now - run->heard_at > SILENCE) {
        say(run, "waiting for standard input: no samples for %d s", SILENCE);
        run->heard_at = INFINITY;
    }
}

static int classes_of(const struct run *run) {
    const struct dataset *train = run->feed->train;
    return train ? dataset_classes(train)->count : model_classes(run->model);
}

// After warming up: before, the rate is meant to be low.
static void watch_health(struct run *run) {
    struct loop_sums now = loop_sums(run->loop);
    if (pace_epoch(&run->pace, loop_next(run->loop)) < run->config->settings.warmup)
        run->health.from = now;
    else
        run->examine |= health_due(&run->health, now, run->pace.samples, classes_of(run));
    if (run->examine)
        loop_pause(run->loop);
}

// Says once what is wrong, if anything.
static void examine(struct run *run) {
    char text[HEALTH_TEXT];
    const struct health_view view = {
        .feed = run->feed,
        .settings = &run->config->settings,
        .model = run->model,
        .kernels = run->kernels,
        .parameters = run->config->checkpoint.parameters,
        .rate = rate_now(run, run->number),
        .classes = classes_of(run),
    };
    run->examine = false;
    if (health_explain(&run->health, &view, text))
        say(run, "%s", text);
}

// Lets the threads train up to `until`, or until the caller wishes otherwise.
static void train(struct run *run, uint64_t until) {
    double before = clock_seconds(), base = run->trained;
    loop_start(run->loop, until);
    for (bool there = false; !there;) {
        there = loop_wait(run->loop, POLL);
        run->trained = base + clock_seconds() - before;
        obey(run);
        watch_stream(run);
        watch_health(run);
        if (run->trained - run->reported_trained >= run->config->settings.metrics_every)
            report_train(run);
        show_progress(run, NULL);
    }
    if (!run->examine || loop_next(run->loop) >= until)
        report_train(run);
    locate(run);
}

static int diverged(struct run *run, double loss, struct error *err) {
    const struct checkpoint *checkpoint = &run->config->checkpoint;
    report(run, "nan", json_pack("{s:o}", "loss", events_number(loss)));
    report(run, "stop", json_pack("{s:s}", "reason", "nan"));
    char advice[HEALTH_TEXT];
    health_advise(advice, loop_diverged_input(run->loop));
    error_set(err, STATUS_DIVERGED,
              "the loss is no longer finite at mini-batch %" PRIu64
              " (epoch %.4g, rate %g), and the update was refused; %s",
              checkpoint->clock, checkpoint->epoch, rate_now(run, run->number), advice);
    return name_last_good(run, err);
}

static int stopped(struct run *run, struct error *err) {
    report(run, "stop", json_pack("{s:s}", "reason", "signal"));
    return error_set(err, STATUS_STOPPED,
                     "stopped at epoch %.4g, all is saved; go on with --resume %s",
                     run->config->checkpoint.epoch, run->config->folder);
}

// At its end a stream is known to have been one epoch.
static void measure_stream(struct run *run) {
    run->pace.samples = run->config->checkpoint.samples;
    locate(run);
}

// One stretch and what is due behind it.
static int stretch(struct run *run, struct error *err) {
    double loss;
    int status = STATUS_OK;
    uint64_t test_at = next_multiple(run, run->config->settings.eval_every);
    uint64_t save_at = next_multiple(run, run->every_epochs);
    train(run, test_at < save_at ? test_at : save_at);
    if (loop_diverged(run->loop, &loss))
        return diverged(run, loss, err);
    if (run->examine)
        examine(run);
    bool exhausted = loop_exhausted(run->loop) && !run->stop;
    run->ended = run->number >= run->last || exhausted;
    if (exhausted && !loader_status(run->loader, NULL))
        measure_stream(run);
    bool test_due = run->number == test_at || run->ended;
    if (run->feed->test && test_due && !run->stop && !loader_status(run->loader, NULL))
        status = test(run, err);
    bool save_due = run->number == save_at || run->ended || run->stop || run->save;
    if (!status && save_due && run->saved != run->number)
        status = save(run, err);
    return !status && run->stop ? stopped(run, err) : status;
}

static int done(struct run *run, struct error *err) {
    const struct checkpoint *checkpoint = &run->config->checkpoint;
    json_t *fields = json_pack("{s:f, s:o}", "seconds", clock_seconds() - run->started, "top1",
                               run->top1 < 0 ? json_null() : json_real(run->top1));
    int status = events_done(run->config->folder, checkpoint, run->top1, err);
    if (status)
        json_decref(fields);
    else
        report(run, "done", fields);
    return status;
}

static int train_all(struct run *run, struct error *err) {
    int status = STATUS_OK;
    run->ended = run->number >= run->last;
    if (run->ended) {
        say(run, "nothing to do: all %" PRIu64 " epochs are done; --epochs gives more",
            run->epochs);
        return STATUS_OK;
    }
    status = run_folder_not_done(run->config->folder, err);
    while (!status && !run->ended)
        status = stretch(run, err);
    if (status)
        return status;
    // The loader's threads end here, and say whether they came to the end of the data.
    loop_close(run->loop);
    run->loop = NULL;
    status = loader_stop(run->loader, err);
    run->loader = NULL;
    if (status)
        return error_context(err, "%s", run->config->settings.data);
    return done(run, err);
}

// --- beginning and end ------------------------------------------------------------------

static void set_range(struct run *run) {
    const struct settings *settings = &run->config->settings;
    const struct checkpoint *checkpoint = &run->config->checkpoint;
    bool stream = run->feed->source != NULL;
    run->pace.batch = (uint64_t)settings->batch;
    if (stream) {
        int64_t count = source_count(run->feed->source);
        run->pace.samples = count > 0 ? (uint64_t)count : 0;
        run->epochs = 1;
        run->number = checkpoint->samples / run->pace.batch;
        run->last = UINT64_MAX;
    } else {
        run->pace.samples = dataset_count(run->feed->train);
        run->epochs = settings->epochs > 0 ? (uint64_t)settings->epochs : SETTINGS_EPOCHS;
        run->number = pace_number(&run->pace, checkpoint->epoch);
        run->last = run->epochs * pace_per_epoch(&run->pace);
    }
    run->first_samples = checkpoint->samples;
    run->saved = run->config->resumed ? run->number : UINT64_MAX;
}

// What the checkpoints record of this run; the same for the same settings and
// data, so that two runs can be compared byte by byte.
static int record(struct run *run, struct error *err) {
    struct checkpoint *checkpoint = &run->config->checkpoint;
    const struct settings *settings = &run->config->settings;
    run->before = checkpoint->run;
    const char *digest =
        json_string_value(json_object_get(json_object_get(run->before, "train"), "digest"));
    json_t *train = feed_describe(settings->data, run->feed->train);
    const char *now = json_string_value(json_object_get(train, "digest"));
    if (run->config->resumed && digest && now && strcmp(digest, now) != 0)
        say(run, "note: %s is not the training set of before (digest %s, was %s)", settings->data,
            now, digest);
    checkpoint->run = json_pack("{s:o, s:o}", "settings", settings_write(settings), "train", train);
    if (checkpoint->run && run->feed->test)
        json_object_set_new(checkpoint->run, "test",
                            feed_describe(settings->test, run->feed->test));
    return checkpoint->run ? STATUS_OK : error_nomem(err);
}

static int keep_names(struct run *run, struct error *err) {
    struct checkpoint *checkpoint = &run->config->checkpoint;
    const struct classes *names = run->feed->train ? dataset_classes(run->feed->train) : NULL;
    int status = STATUS_OK, label;
    for (int i = 0; names && !status && i < names->count; i++)
        status = classes_label(&checkpoint->classes, names->names[i], &label, err);
    return status;
}

static int open_data(struct run *run, struct error *err) {
    const struct run_config *config = run->config;
    int status = feed_open(&run->feed, &config->settings, run->model, &config->checkpoint.classes,
                           &config->data, err);
    if (!status)
        status = keep_names(run, err);
    if (!status)
        status = record(run, err);
    if (status)
        return status;
    set_range(run);
    return settings_schedule(&config->settings, (double)run->epochs, &run->schedule, err);
}

static int open_folder(struct run *run, struct error *err) {
    const struct run_config *config = run->config;
    if (config->resumed)
        return STATUS_OK;
    int status = run_folder_make(config->folder, err);
    return status ? status : beginning_write(&config->checkpoint, config->folder, err);
}

static int open_metrics(struct run *run, struct error *err) {
    char *path = NULL;
    if (asprintf(&path, "%s/metrics.jsonl", run->config->folder) < 0)
        return error_nomem(err);
    int status = metrics_open(&run->metrics, path, "worker", 0, err);
    free(path);
    return status;
}

static int open_loop(struct run *run, struct error *err) {
    struct checkpoint *checkpoint = &run->config->checkpoint;
    const struct settings *settings = &run->config->settings;
    int threads = settings->sync ? 1 : run->threads;
    int status = home_open(&run->home, run->kind, run->model, &checkpoint->optimizer, run->kernels,
                           checkpoint->parameters, checkpoint->state, checkpoint->clock, threads,
                           (int)settings->batch, err);
    if (!status)
        status = feed_train(run->feed, settings, run->model, run->epochs, run->number, run->threads,
                            &run->loader, err);
    if (status)
        return status;
    const struct loop_config config = {
        .model = run->model,
        .kernels = run->kernels,
        .optimizer = &checkpoint->optimizer,
        .schedule = &run->schedule,
        .home = run->home,
        .supply = loader_supply(run->loader),
        .patience = SUPPLY_PATIENT,
        .pace = run->pace,
        .first = run->number,
        .threads = run->threads,
        .batch = (int)settings->batch,
        .sync = settings->sync,
        .seed = (uint64_t)settings->seed,
    };
    return loop_open(&run->loop, &config, err);
}

static int open_run(struct run *run, struct error *err) {
    const struct settings *settings = &run->config->settings;
    run->started = run->last_save = clock_seconds();
    run->config->checkpoint.command = run->config->command;
    run->model = run->config->checkpoint.model;
    run->kernels = kernels_best();
    run->threads = settings->threads > 0 ? (int)settings->threads : cpu_count();
    run->top1 = -1;
    int status = settings_checkpoint_every(settings, &run->every_epochs, &run->every_seconds, err);
    if (!status)
        status = weights_rule(&run->config->checkpoint, settings, err);
    if (!status)
        status = settings_home(settings, run->model, &run->config->checkpoint.optimizer,
                               settings->sync ? 1 : run->threads, &run->kind, err);
    if (!status)
        status = open_data(run, err);
    if (!status)
        status = weights_make(&run->config->checkpoint, run->model, err);
    if (!status)
        status = open_folder(run, err);
    if (!status)
        status = open_metrics(run, err);
    if (!status)
        status = open_loop(run, err);
    return status;
}

static void close_run(struct run *run) {
    loop_close(run->loop);
    metrics_close(run->metrics);
    if (run->loader && run->feed->source && run->stop) {
        loader_abandon(run->loader); // and what it reads: the feed
    } else {
        loader_stop(run->loader, NULL);
        feed_close(run->feed);
    }
    if (run->home)
        run->home->ops->close(run->home);
    checkpoint_free(&run->config->checkpoint);
    json_decref(run->before);
}

int run_train(struct run_config *config, struct error *err) {
    struct run run = {.config = config};
    int status = open_run(&run, err);
    if (!status) {
        char text[HEALTH_TEXT];
        report_start(&run);
        if (run.feed->train && health_classes(text, run.model, classes_of(&run)))
            say(&run, "%s", text);
        if (!config->settings.sync && run.threads > 1)
            say(&run, "%s", home_text((char[128]){0}, run.kind, run.model, run.threads));
        status = train_all(&run, err);
        if (status && status != STATUS_STOPPED && status != STATUS_DIVERGED)
            report(&run, "stop", json_pack("{s:s, s:s}", "reason", "error", "error", err->text));
    }
    close_run(&run);
    return status;
}
