// What a run says of itself, and what it hears of its caller.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/error.h"
#include "train/events.h"
#include "train/trainer_internal.h"

void trainer_say(const struct trainer *trainer, const char *format, ...) {
    char text[ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    trainer->config->hooks.say(trainer->config->hooks.self, text);
}

double trainer_rate(const struct trainer *trainer, uint64_t batch_number) {
    return schedule_rate(&trainer->schedule, pace_epoch(&trainer->pace, batch_number));
}

void trainer_report(struct trainer *trainer, const char *event, json_t *fields) {
    struct error err = {0};
    if (events_write(trainer->metrics, &trainer->config->checkpoint, event, fields, &err))
        trainer_say(trainer, "warning: %s; the run goes on", err.text);
}

// NULL: threads share one mini-batch.
static const char *home_name(const struct trainer *trainer) {
    if (trainer->cut)
        return "partitions";
    return trainer->config->settings.sync ? NULL : home_names[trainer->kind];
}

void trainer_report_start(struct trainer *trainer) {
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
    trainer_report(trainer, "start", fields);
}

void trainer_locate(struct trainer *trainer) {
    struct checkpoint *checkpoint = &trainer->config->checkpoint;
    trainer->number = loop_next(trainer->loop);
    checkpoint->clock = trainer->home->ops->clock(trainer->home);
    checkpoint->samples = trainer->first_samples + loop_sums(trainer->loop).samples;
    checkpoint->epoch = pace_epoch(&trainer->pace, trainer->number);
}

void trainer_report_train(struct trainer *trainer) {
    struct loop_sums now = loop_sums(trainer->loop);
    double samples = (double)(now.samples - trainer->reported.samples);
    double seconds = trainer->trained - trainer->reported_trained;
    if (samples <= 0 || seconds <= 0)
        return;
    trainer_locate(trainer);
    json_t *fields =
        json_pack("{s:o, s:f, s:f, s:f, s:f, s:f}",                                   //
                  "loss", json_number((now.loss - trainer->reported.loss) / samples), //
                  "rate", trainer_rate(trainer, trainer->number),                     //
                  "images_per_s", samples / seconds,                                  //
                  "connections_per_s",
                  samples / seconds * (double)trainer->model->connections, //
                  "wait",
                  (now.waited - trainer->reported.waited) / (seconds * trainer->threads), //
                  "seconds", seconds);
    trainer_report(trainer, "train", fields);
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

void trainer_show(struct trainer *trainer, const char *doing) {
    look_back(trainer);
    struct trainer_progress *now = &trainer->late;
    uint64_t next = loop_next(trainer->loop);
    now->doing = doing;
    now->epochs = trainer->pace.samples > 0 ? (double)trainer->epochs : 0;
    now->samples = trainer->first_samples + loop_sums(trainer->loop).samples;
    now->clock = trainer->home->ops->clock(trainer->home);
    now->epoch = pace_epoch(&trainer->pace, next);
    now->rate = trainer_rate(trainer, next);
    double left = (now->epochs - now->epoch) * (double)trainer->pace.samples;
    bool known = trainer->pace.samples > 0 && now->samples_per_s > 0;
    now->seconds_left = known ? left / now->samples_per_s : -1;
    trainer->config->hooks.progress(trainer->config->hooks.self, now);
}

void trainer_hear(struct trainer *trainer) {
    const struct trainer_hooks *hooks = &trainer->config->hooks;
    enum trainer_wish wish = hooks->wish(hooks->self);
    trainer->quit |= wish == TRAINER_QUIT;
    trainer->stop |= wish == TRAINER_STOP || wish == TRAINER_QUIT;
    trainer->save |= wish == TRAINER_SAVE;
    trainer->pause |= wish == TRAINER_PAUSE;
}

static void say_cut(const struct trainer *trainer) {
    const struct settings *settings = &trainer->config->settings;
    trainer_say(trainer,
                "%" PRIi64 " partitions of the model, %" PRIi64
                " %s in flight; expected speed-up %.2f",
                settings->partitions, settings->in_flight,
                settings->sync             ? "parts of a mini-batch"
                : settings->in_flight == 1 ? "mini-batch"
                                           : "mini-batches",
                cut_speed_up(trainer->cut));
}

void trainer_say_start(const struct trainer *trainer) {
    const struct settings *settings = &trainer->config->settings;
    char text[HEALTH_TEXT], home[128];
    int classes = trainer_classes(trainer);
    if (trainer->feed->train && classes > 0 && health_classes(text, trainer->model, classes))
        trainer_say(trainer, "%s", text);
    if (trainer->cut)
        say_cut(trainer);
    else if (!settings->sync && trainer->threads > 1)
        trainer_say(
            trainer, "%s",
            home_text(home, trainer->kind, trainer->model, trainer->threads, (int)settings->batch));
}
