// adam-worker: trains a model on this machine with all its processors, alone or as one of
// many workers of a run.
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/network.h"
#include "cli/option.h"
#include "cli/progress.h"
#include "cli/talk.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/words.h"
#include "member/place.h"
#include "model/differences.h"
#include "role/alone.h"
#include "role/worker/worker.h"
#include "run/model_ops.h"
#include "train/beginning.h"
#include "train/feed.h"
#include "train/trainer.h"

#define PROGRAM "adam-worker"

struct options {
    struct settings settings;
    const char *model, *out, *resume, *listen;
    struct option_list set, freeze;
    struct network network;
    bool force, quiet;
    char *folder;        // of the run that --resume means
    struct words frozen; // overrides that --freeze stands for
    const char *alone;   // an option that was given and is not of a worker of a run; NULL
};

// --- the command line -------------------------------------------------------------------

// The first of the rows that were given and do not belong to a worker of a run.
static const char *find_alone(const struct option_row *rows, const bool *given, size_t count) {
    static const char *const member[] = {"controller", "name",    "keys", "insecure",
                                         "listen",     "threads", "quiet"};
    for (size_t i = 0; i < count; i++) {
        bool known = !given[i];
        for (size_t k = 0; !known && k < sizeof member / sizeof *member; k++)
            known = !strcmp(rows[i].name, member[k]);
        if (!known)
            return rows[i].name;
    }
    return NULL;
}

static enum cli_next parse(struct options *o, int argc, char **argv, int *operand,
                           struct error *err) {
    struct settings *s = &o->settings;
    const struct option_row rows[] = {
        HEADING("Model and data"),
        TEXT('m', "model", "FILE", &o->model, NULL, "model file, see adam-model(5)"),
        LIST_OF(0, "set", "LAYER.KEY=VALUE", &o->set, model_key,
                "override a key of a layer, or of all that a pattern matches"),
        LIST(0, "freeze", "PATTERN", &o->freeze,
             "layers whose weights stay as they are: --set PATTERN.rate=0"),
        TEXT(0, "init-from", "CHECKPOINT", &s->init_from, NULL,
             "begin with the weights of its layers of the same names and shapes"),
        TEXT(0, "class-weights", "FILE", &s->class_weights, "those of the model",
             "how much classes count: auto, all together alike; or FILE of CLASS TAB WEIGHT"),
        TEXT('d', "data", "FILE", &s->data, NULL, "training set; - is standard input"),
        TEXT(0, "labels", "FILE", &s->labels, NULL, "labels of an IDX or npy training set"),
        TEXT(0, "targets", "FILE", &s->targets, NULL,
             "what samples have in the place of labels: classes of each, or numbers"),
        TEXT(0, "test", "FILE", &s->test, NULL,
             "test set; auto=0.1 holds out a tenth of each class of the training set"),
        TEXT(0, "test-labels", "FILE", &s->test_labels, NULL, "labels of an IDX or npy test set"),
        TEXT(0, "test-targets", "FILE", &s->test_targets, "those of --targets",
             "the same of the test set"),
        TEXT(0, "from", "KIND", &s->from, "recognised", "kind of the training set"),
        TEXT(0, "spool", "FILE", &s->spool, NULL,
             "copy standard input to FILE first, and train on that"),
        TEXT_OF(0, "ops", "OPS", &s->ops, ops_name, NULL,
                "augment each picture in each epoch, see adam-ops(7)"),
        REAL(0, "mixup", "ALPHA", &s->mixup, 0, 100, "0: no",
             "mix pairs of samples by shares of Beta(ALPHA, ALPHA), and their labels"),
        REAL(0, "cutmix", "ALPHA", &s->cutmix, 0, 100, "0: no",
             "the same by rectangles that pairs exchange"),
        HEADING("Training"),
        INT('e', "epochs", "N", &s->epochs, 1, 1e9, "10; 1 from a pipe", "passes over the data"),
        INT('b', "batch", "N", &s->batch, 1, 1e6, "16", "samples of a mini-batch"),
        INT('t', "threads", "N", &s->threads, 1, 4096, "processors", "training threads"),
        FLAG(0, "sync", &s->sync,
             "all threads share one mini-batch; the result does not depend on their number"),
        CHOICE(0, "home", "WHERE", &s->home, home_names, "by model and --batch",
               "weights of threads: shared, copies that are merged, or joined passes"),
        INT(0, "partitions", "N", &s->partitions, 1, 64, "1: it is whole",
            "cut the model into N partitions, each with a thread that trains its part"),
        INT(0, "in-flight", "N", &s->in_flight, 1, 64, "1",
            "mini-batches that partitions train at a time; with --sync parts of one"),
        CHOICE(0, "optimizer", "RULE", &s->optimizer, rule_names, "sgd",
               "update rule; momentum when --momentum is given"),
        REAL('r', "rate", "X", &s->rate, 0, 1e9, "0.01; 0.001 with rmsprop, adam, adamw",
             "learning rate"),
        TEXT(0, "schedule", "SCHEDULE", &s->schedule, "constant",
             "constant, step:F@E,..., step:F/E, exp:F or cosine[:X]"),
        REAL(0, "warmup", "EPOCHS", &s->warmup, 0, 1e9, "0",
             "epochs in which the rate grows linearly from 0"),
        REAL(0, "momentum", "X", &s->momentum, 0, 1, "0.9 with momentum, nesterov, adam, adamw",
             "momentum coefficient; of adam and adamw beta1"),
        REAL(0, "beta2", "X", &s->beta2, 0, 1, "0.999; 0.99 with rmsprop",
             "rmsprop, adam, adamw: decay rate of the mean of squared gradients"),
        REAL(0, "decay", "X", &s->decay, 0, 1, "0", "weight decay of layers that set none"),
        REAL(0, "epsilon", "X", &s->epsilon, 0, 1, "1e-8",
             "adagrad, rmsprop, adam, adamw: constant added to the square root"),
        REAL(0, "ema", "X", &s->ema, 0, SETTINGS_EMA_MOST, "0: none",
             "decay rate of a moving average of the weights, which is tested and saved"),
        REAL(0, "clip", "X", &s->clip, 0, 1e9, "0: no limit", "largest norm of a layer's gradient"),
        INT('s', "seed", "N", &s->seed, 0, 9007199254740992.0, "1",
            "seed for initial weights, sample order, augmentation and dropout"),
        INT(0, "loaders", "N", &s->loaders, 1, 256, "1", "threads that decode and augment"),
        BYTES(0, "frozen-memory", "BYTES", &s->frozen_memory, "1G",
              "keep what frozen layers give from epoch to epoch"),
        HEADING("With parameter servers"),
        NETWORK_ROWS(&o->network),
        MAYBE("listen", "ADDR", &o->listen, "nowhere; without ADDR a Unix socket",
              "where other workers reach it, in a run that cuts its model"),
        HEADING("Output"),
        TEXT('o', "out", "DIR", &o->out, NULL, "run folder: checkpoints and metrics"),
        TEXT(0, "resume", "DIR", &o->resume, NULL, "go on with the run in DIR"),
        FLAG('f', "force", &o->force, "replace a run, or a spool file, that exists"),
        REAL(0, "eval-every", "EPOCHS", &s->eval_every, 0, 1e9, "1",
             "between two tests, such as 0.125; 0: one at the end"),
        TEXT(0, "checkpoint-every", "TIME", &s->checkpoint_every, "1",
             "epochs, or minutes (15m), between checkpoints; 0: only at the end"),
        INT(0, "keep-last", "N", &s->keep_last, 0, 1e9, "3", "checkpoints to keep; 0: all"),
        INT(0, "patience", "N", &s->patience, 0, 1e9, "0: never",
            "end when N tests have not been better than the best one"),
        REAL(0, "metrics-every", "SECONDS", &s->metrics_every, 0.1, 1e9, "5",
             "seconds between lines of metrics.jsonl"),
        FLAG('q', "quiet", &o->quiet, "say nothing but errors"),
    };
    bool given[sizeof rows / sizeof *rows] = {false};
    const struct command command = {
        .name = PROGRAM,
        .synopsis = "--model FILE --data FILE --out DIR [options]\n"
                    "--resume DIR [options]\n"
                    "--controller ADDR [options]",
        .about = "train a model on this machine, or with others",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .given = given,
    };
    enum cli_next next = cli_parse(&command, argc, argv, operand, err);
    settings_round(s);
    o->alone = find_alone(rows, given, sizeof rows / sizeof *rows);
    return next;
}

// A worker of a run trains what the controller says.
static int check_member(const struct options *o, struct error *err) {
    if (!o->alone)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "the controller at %s says what is trained, and how; leave out --%s",
                     o->network.controller, o->alone);
}

// What has no meaning beside the rest. Of a run that goes on the rest is what it was begun with,
// too, and what is refused is what is `given` now.
static int check_settings(const struct settings *s, const struct settings *given,
                          struct error *err) {
    if (s->partitions > 1 && (s->threads > 0 || s->home))
        return error_set(err, STATUS_USAGE,
                         "each of the %lld partitions has a thread and weights of its own; leave "
                         "out --%s",
                         (long long)s->partitions, s->home ? "home" : "threads");
    if (s->sync && s->home && !given->sync)
        return error_set(err, STATUS_USAGE,
                         "the threads of this run share one mini-batch, as it was begun with "
                         "--sync; leave out --home");
    if (s->patience > 0 && !s->test)
        return error_set(err, STATUS_USAGE, "--patience needs tests: --test FILE");
    bool stream = s->data && !strcmp(s->data, "-");
    if (given->spool && !stream)
        return error_set(err, STATUS_USAGE, "--spool is for --data -");
    if (stream && !s->spool && given->epochs > 1)
        return error_set(err, STATUS_USAGE,
                         "standard input can be read once; --spool FILE keeps it for %lld epochs",
                         (long long)given->epochs);
    return STATUS_OK;
}

static int check(const struct options *o, int argc, int operand, char **argv, struct error *err) {
    const struct settings *s = &o->settings;
    if (operand != argc)
        return error_set(err, STATUS_USAGE, "unexpected '%s'; the training set is --data FILE",
                         argv[operand]);
    if (o->network.controller)
        return check_member(o, err);
    if (o->listen)
        return error_set(err, STATUS_USAGE, "--listen is for workers of a run: --controller ADDR");
    bool model = o->model || s->init_from;
    if (!o->resume && (!model || !s->data || !o->out))
        return error_set(err, STATUS_USAGE, "needs %s; try '%s --help'",
                         !model     ? "--model FILE"
                         : !s->data ? "--data FILE"
                                    : "--out DIR",
                         PROGRAM);
    if (o->resume && s->init_from)
        return error_set(err, STATUS_USAGE,
                         "--resume goes on with the weights of %s; leave out --init-from",
                         o->resume);
    if (o->resume && (o->model || o->out))
        return error_set(err, STATUS_USAGE,
                         "--resume goes on with the model and the folder of %s; leave out --%s",
                         o->resume, o->model ? "model" : "out");
    return o->resume ? STATUS_OK : check_settings(s, s, err);
}

// --- signals ----------------------------------------------------------------------------

// Written by the handler alone; see cli/talk.c.
static atomic_int saves_wanted;

static void save_handler(int number) {
    (void)number;
    saves_wanted++;
}

static void prepare_signals(void) {
    struct sigaction action = {.sa_handler = save_handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    stop_on_signals(true);
}

// --- talk -------------------------------------------------------------------------------

struct talker {
    struct progress progress;
    int saves_seen;
};

static enum trainer_wish wish(void *self) {
    struct talker *talker = self;
    int wanted = saves_wanted;
    if (stop_requested())
        return TRAINER_STOP;
    if (wanted == talker->saves_seen)
        return TRAINER_GO_ON;
    talker->saves_seen = wanted;
    return TRAINER_SAVE;
}

// How far the run is: "epoch 1.25 of 10", or of a stream "48000 images".
static void show_place(char text[64], const struct trainer_progress *now) {
    if (now->epochs > 0)
        snprintf(text, 64, "epoch %.2f of %g", now->epoch, now->epochs);
    else
        snprintf(text, 64, "%llu images", (unsigned long long)now->samples);
}

static void show_partition(struct talker *talker, const struct trainer_progress *now) {
    progress_line(
        &talker->progress, "partition %d of its model  %llu images  %.0f images/s  wait %.0f%%",
        now->partition, (unsigned long long)now->samples, now->samples_per_s, 100 * now->waiting);
}

static void show(void *self, const struct trainer_progress *now) {
    struct talker *talker = self;
    char left[32], place[64];
    if (!progress_due(&talker->progress))
        return;
    if (now->partition > 0) {
        show_partition(talker, now);
        return;
    }
    show_place(place, now);
    progress_left(left, now->doing, now->seconds_left);
    progress_line(&talker->progress, "%s  loss %.4f  rate %.3g  %.0f images/s  wait %.0f%%  %s",
                  place, now->loss, now->rate, now->samples_per_s, 100 * now->waiting, left);
}

static void say(void *self, const char *text) {
    struct talker *talker = self;
    progress_say(&talker->progress, PROGRAM, text);
}

// --- the run ----------------------------------------------------------------------------

// --freeze PATTERN is an override like others.
static int freeze_layers(struct options *o, struct error *err) {
    const char **sets = mem_resize(o->set.items, o->set.count + o->freeze.count + 1, sizeof *sets);
    if (!sets)
        return error_nomem(err);
    o->set.items = sets;
    for (size_t i = 0; i < o->freeze.count; i++)
        words_format(&o->frozen, "%s.rate=0", o->freeze.items[i]);
    if (o->frozen.failed)
        return error_nomem(err);
    for (size_t i = 0; i < o->frozen.count; i++)
        sets[o->set.count++] = o->frozen.items[i];
    return STATUS_OK;
}

static void say_anew(void *self, const char *folder) {
    char text[1200];
    snprintf(text, sizeof text,
             "note: the run in %s ended before its first checkpoint; it begins anew", folder);
    say(self, text);
}

static void say_path(void *self, const char *name, const char *before, const char *after) {
    char text[2400];
    snprintf(text, sizeof text, "note: --%s %s is %s, as the run was started there", name, before,
             after);
    say(self, text);
}

static void say_difference(void *self, const char *name, const char *before, const char *after) {
    char text[1200];
    snprintf(text, sizeof text, "--%s is %s now, was %s", name, after, before);
    say(self, text);
}

// The model as it was, before overrides that are given now.
static int load_model(struct checkpoint *before, const struct options *o, bool resumed,
                      struct error *err) {
    return resumed ? checkpoint_load_model(before, o->resume, NULL, 0, err)
                   : beginning_read(before, o->folder, NULL, 0, err);
}

// Overrides are settings, too.
static int say_overrides(const struct options *o, const struct trainer_config *config,
                         struct talker *talker, struct error *err) {
    struct checkpoint before = {0};
    char text[MODEL_DIFFERENCE];
    int line = 0;
    if (o->set.count == 0)
        return STATUS_OK;
    int status = load_model(&before, o, config->resumed, err);
    while (!status &&
           model_difference(text, before.model->text, config->checkpoint.model->text, &line))
        say(talker, text);
    checkpoint_free(&before);
    return status;
}

// A run that was killed before its first checkpoint begins anew.
static int load(struct options *o, struct trainer_config *config, struct talker *talker,
                struct error *err) {
    struct checkpoint *checkpoint = &config->checkpoint;
    o->folder = run_folder_of(o->resume);
    config->folder = o->folder;
    if (!o->folder)
        return error_nomem(err);
    config->resumed = !beginning_only(o->folder);
    if (config->resumed)
        return checkpoint_load(checkpoint, o->resume, o->set.items, o->set.count, true, err);
    int status = run_folder_check(o->folder, true, err);
    if (!status)
        status = beginning_read(checkpoint, o->folder, o->set.items, o->set.count, err);
    if (!status)
        say_anew(talker, o->folder);
    return status;
}

// Relative paths of the settings begin in the folder in which the run was started.
static void find_files(struct talker *talker, const struct checkpoint *checkpoint,
                       json_t *settings) {
    char *here = getcwd(NULL, 0);
    if (here && checkpoint->directory && strcmp(here, checkpoint->directory) != 0)
        settings_relocate(settings, checkpoint->directory, say_path, talker);
    free(here);
}

// The stored settings, over which the command line is read once more: what is
// given there wins.
static int resume(struct options *o, struct trainer_config *config, struct talker *talker, int argc,
                  char **argv, struct error *err) {
    int operand;
    int status = load(o, config, talker, err);
    if (!status)
        status = say_overrides(o, config, talker, err);
    if (status)
        return status;
    json_t *stored = json_object_get(config->checkpoint.run, "settings");
    if (json_object_size(stored) == 0) // adam-ctl import made it
        return error_set(err, STATUS_USAGE,
                         "nothing was trained in %s that could go on; --init-from begins with its "
                         "weights",
                         o->resume);
    find_files(talker, &config->checkpoint, stored);
    const struct settings given = o->settings;
    settings_default(&o->settings);
    settings_read(&o->settings, stored);
    free(o->set.items);
    free(o->freeze.items);
    o->set = o->freeze = (struct option_list){0};
    const struct settings before = o->settings;
    if (parse(o, argc, argv, &operand, err) != CLI_RUN)
        return STATUS_USAGE;
    config->weigh = o->settings.class_weights != before.class_weights; // given anew
    settings_fit(&o->settings, &before, &given);
    status = check_settings(&o->settings, &given, err);
    if (status)
        return status;
    json_t *now = settings_write(&o->settings);
    if (!now)
        return error_nomem(err);
    settings_compare(stored, now, say_difference, talker);
    json_decref(now);
    config->checkpoint.seed = (uint64_t)o->settings.seed;
    return STATUS_OK;
}

static int start(struct options *o, struct trainer_config *config, struct talker *talker,
                 struct error *err) {
    const char *model = o->model ? o->model : o->settings.init_from;
    int status = settings_check_text("out", o->out, err);
    if (!status)
        status = settings_check_text("model", model, err);
    if (!status && !o->force)
        status = run_folder_check(o->out, true, err);
    if (!status)
        status = model_ops_read(&config->checkpoint.model, model, o->set.items, o->set.count, err);
    if (!status && !o->force && run_folder_begun(o->out))
        say_anew(talker, o->out);
    config->checkpoint.seed = (uint64_t)o->settings.seed;
    config->weigh = true;
    config->folder = o->out;
    return status;
}

// Alone: with the parameters in this process.
static int run_alone(struct options *o, struct talker *talker, const char *command, int argc,
                     char **argv, struct error *err) {
    struct trainer_config config = {
        .hooks = {talker, wish, show, say}, .data = {talker, talk_stop, say}, .command = command};
    int status = freeze_layers(o, err);
    if (!status)
        status = o->resume ? resume(o, &config, talker, argc, argv, err)
                           : start(o, &config, talker, err);
    if (!status && o->settings.spool)
        status = feed_spool(&o->settings, o->force, &config.data, err);
    config.settings = o->settings;
    char name[NETWORK_NAME_MAX];
    if (!status)
        return alone_run(&config, network_name(&o->network, name), err);
    checkpoint_free(&config.checkpoint);
    return status;
}

// As a member of a run: with the parameters on its servers.
static int run_member(struct options *o, struct talker *talker, const char *command,
                      struct error *err) {
    char name[NETWORK_NAME_MAX];
    struct secrets *keys = NULL;
    int status = place_keys(&keys, o->network.keys, err);
    char listen[PROTO_ADDRESS_MAX];
    if (!status && o->listen)
        status = place_address(listen, "worker", *o->listen ? o->listen : NULL, NULL, err);
    const struct worker_options options = {
        .controller = o->network.controller,
        .name = network_name(&o->network, name),
        .command = command,
        .listen = o->listen ? listen : NULL,
        .keys = keys,
        .insecure = o->network.insecure,
        .threads = (int)o->settings.threads,
        .hooks = {talker, wish, show, say},
    };
    if (!status)
        status = worker_run(&options, err);
    secrets_close(keys);
    return status;
}

static int run(struct options *o, int argc, char **argv, struct error *err) {
    int operand;
    enum cli_next next = parse(o, argc, argv, &operand, err);
    if (next != CLI_RUN)
        return next == CLI_DONE ? STATUS_OK : STATUS_USAGE;
    int status = check(o, argc, operand, argv, err);
    if (status)
        return status;
    struct talker talker = {0};
    progress_start(&talker.progress, o->quiet);
    prepare_signals();
    char *command = words_command(PROGRAM, argc, argv);
    const char *words = command ? command : PROGRAM;
    status = o->network.controller ? run_member(o, &talker, words, err)
                                   : run_alone(o, &talker, words, argc, argv, err);
    progress_clear(&talker.progress);
    free(command);
    return status;
}

int main(int argc, char **argv) {
    struct options options = {0};
    struct error err = {0};
    talk_begin(_exit);
    settings_default(&options.settings);
    network_default(&options.network);
    int status = run(&options, argc, argv, &err);
    free(options.set.items);
    free(options.freeze.items);
    words_free(&options.frozen);
    free(options.folder);
    return talk_end(PROGRAM, status, &err, options.quiet);
}
