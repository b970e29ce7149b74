// What a run on this machine is made of, from its data to its threads.
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "train/beginning.h"
#include "train/class_weights.h"
#include "train/inherit.h"
#include "train/trainer_internal.h"
#include "train/weights.h"

int trainer_classes(const struct trainer *trainer) {
    if (trainer->config->settings.targets)
        return 0;
    const struct dataset *train = trainer->feed->train;
    return train ? dataset_classes(train)->count : model_classes(trainer->model);
}

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
        trainer->epochs = (uint64_t)settings_epochs(settings);
        trainer->number = pace_number(&trainer->pace, checkpoint->epoch);
        trainer->last = trainer->epochs * pace_per_epoch(&trainer->pace);
    }
    trainer->first_samples = checkpoint->samples;
    trainer->saved = trainer->config->resumed ? trainer->number : UINT64_MAX;
}

// Whether a set, "train" or "test", is another one than that of before; said.
static bool is_other_set(const struct trainer *trainer, const char *name, const char *words,
                         const json_t *set) {
    char text[FEED_TEXT];
    bool other = trainer->config->resumed &&
                 feed_differs(text, json_object_get(trainer->before, name), set, words);
    if (other)
        trainer_say(trainer, "note: %s", text);
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
        trainer_say(trainer, "note: what was best on that test set, epoch %.4g, no longer counts",
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
    is_other_set(trainer, "train", "training", train);
    recall_tests(trainer, is_other_set(trainer, "test", "test", test));
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
    return trainer_schedule(trainer, &config->settings, &trainer->schedule, err);
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
    trainer_say(trainer, "%s", text);
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

int trainer_open(struct trainer *trainer, struct error *err) {
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

void trainer_close(struct trainer *trainer) {
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
