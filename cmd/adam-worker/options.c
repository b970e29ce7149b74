#include "adam-worker/options.h"

#include <string.h>

#include "core/error.h"
#include "run/model_ops.h"

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

enum cli_next options_parse(struct options *o, int argc, char **argv, int *operand,
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

int options_check_settings(const struct settings *s, const struct settings *given,
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

int options_check(const struct options *o, int argc, int operand, char **argv, struct error *err) {
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
    return o->resume ? STATUS_OK : options_check_settings(s, s, err);
}
