#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "train/events.h"
#include "train/trainer_internal.h"

#define POLL 0.1 // seconds between two looks at what the caller wishes

enum { SILENCE = 10 }; // seconds until a wait for standard input is said

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
    trainer_hear(trainer);
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
        trainer_say(trainer, "waiting for standard input: no samples for %d s", SILENCE);
        trainer->heard_at = INFINITY;
    }
}

// After warming up: before, the rate is meant to be low.
static void watch_health(struct trainer *trainer) {
    struct loop_sums now = loop_sums(trainer->loop);
    if (pace_epoch(&trainer->pace, loop_next(trainer->loop)) < trainer->config->settings.warmup)
        trainer->health.from = now;
    else
        trainer->examine |=
            health_due(&trainer->health, now, trainer->pace.samples, trainer_classes(trainer));
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
        .rate = trainer_rate(trainer, trainer->number),
        .classes = trainer_classes(trainer),
    };
    trainer->examine = false;
    if (health_explain(&trainer->health, &view, text))
        trainer_say(trainer, "%s", text);
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
            trainer_report_train(trainer);
        trainer_show(trainer, NULL);
    }
    if (!trainer->examine || loop_next(trainer->loop) >= until)
        trainer_report_train(trainer);
    trainer_locate(trainer);
}

static int report_divergence(struct trainer *trainer, double loss, struct error *err) {
    const struct checkpoint *checkpoint = &trainer->config->checkpoint;
    trainer_report(trainer, "nan", json_pack("{s:o}", "loss", json_number(loss)));
    trainer_report(trainer, "stop", json_pack("{s:s}", "reason", "nan"));
    char advice[HEALTH_TEXT];
    health_advise(advice, loop_diverged_input(trainer->loop));
    error_set(err, STATUS_DIVERGED,
              "the loss is no longer finite at mini-batch %" PRIu64
              " (epoch %.4g, rate %g), and the update was refused; %s",
              checkpoint->clock, checkpoint->epoch, trainer_rate(trainer, trainer->number), advice);
    return trainer_name_last_good(trainer, err);
}

static int report_stop(struct trainer *trainer, struct error *err) {
    trainer_report(trainer, "stop", json_pack("{s:s}", "reason", "signal"));
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
    trainer_locate(trainer);
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
    trainer_take_changes(trainer);
    bool exhausted = loop_exhausted(trainer->loop) && !trainer->stop;
    trainer->ended = trainer->number >= trainer->last || exhausted;
    if (exhausted && !loader_status(trainer->loader, NULL))
        measure_stream(trainer);
    if (exhausted && trainer->first_samples > 0 && loop_sums(trainer->loop).samples == 0)
        trainer_say(trainer,
                    "nothing to train: standard input ends before sample %" PRIu64
                    ", up to which all are done",
                    trainer->first_samples + 1);
    bool test_due = trainer->number == test_at || trainer->ended;
    if (trainer->feed->test && test_due && !loader_status(trainer->loader, NULL))
        status = trainer_test(trainer, err);
    bool save_due = trainer->number == save_at || trainer->ended || trainer->stop || trainer->save;
    if (!status && save_due && !trainer->quit)
        status = trainer_save(trainer, err);
    return !status && is_stopped(trainer) ? report_stop(trainer, err) : status;
}

// Before more is trained: the test that a stop prevented, and at the end the last one, whose
// figures are to be told.
static int catch_up(struct trainer *trainer, struct error *err) {
    bool due = trainer->owed || trainer->ended;
    int status = STATUS_OK;
    trainer->changed |= trainer->ended; // the settings may be others
    if (trainer->feed->test && due)
        status = trainer_test(trainer, err);
    if (!status && !trainer->owed && (due || trainer->save))
        status = trainer_save(trainer, err);
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
        trainer_report(trainer, "done", fields);
    return status;
}

// Whether there is nothing to train; said where there is nothing to do at all. A run that was
// killed between its last checkpoint and its end has yet to be ended.
static bool is_done(struct trainer *trainer) {
    bool done = run_folder_is_done(trainer->config->folder);
    trainer->impatient = !done && trainer_is_impatient(trainer) &&
                         trainer->tested_at == trainer->config->checkpoint.clock;
    trainer->ended = trainer->number >= trainer->last || trainer->impatient;
    if (trainer->ended && done)
        trainer_say(trainer, "nothing to do: all %" PRIu64 " epochs are done; --epochs gives more",
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

int trainer_run(struct trainer_config *config, struct error *err) {
    struct trainer trainer = {.config = config};
    int status = trainer_open(&trainer, err);
    if (!status && !is_done(&trainer)) {
        trainer_report_start(&trainer);
        trainer_say_start(&trainer);
        if (config->director)
            config->director->begun(config->director->self);
        status = train_epochs(&trainer, err);
        if (status && status != STATUS_STOPPED && status != STATUS_DIVERGED)
            trainer_report(&trainer, "stop",
                           json_pack("{s:s, s:s}", "reason", "error", "error", err->text));
    }
    trainer_close(&trainer);
    return status;
}
