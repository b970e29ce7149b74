#include "adam-eval/options.h"

#include "core/error.h"
#include "model/cut.h"
#include "model/model.h"
#include "ops/ops.h"
#include "prep/reject.h"

static const char *const print_choices[] = {"figures", "predictions", NULL};
static const char *const error_choices[] = {"stop", "skip", NULL};
static const char *const format_choices[] = {"tsv", "json", NULL};
static const char *const label_choices[] = {"default", "parent", "column", "none", NULL};

// What is followed is tested on the same samples again and again, a line each time.
static int check_following(const struct options *o, struct error *err) {
    if (o->model || o->sets.count > 0)
        return error_set(err, STATUS_USAGE, "a run that is followed has its own model");
    if (!o->data || option_is(o->data, "-") || o->files_from || o->picture_count > 0)
        return error_set(err, STATUS_USAGE, "--follow needs --data, which can be read again");
    if (o->top || option_is(o->print, "predictions") || o->confusion || o->per_class ||
        o->per_sample || o->reject || o->min_top1 >= 0)
        return error_set(err, STATUS_USAGE, "--follow prints figures alone");
    return STATUS_OK;
}

// What is counted of labels.
static int check_targets(const struct options *o, struct error *err) {
    const char *given = o->labels                              ? "--labels"
                        : !option_is(o->label_from, "default") ? "--label-from"
                        : o->confusion                         ? "--confusion"
                        : o->min_top1 >= 0                     ? "--min-top1"
                        : o->features                          ? "--features"
                                                               : NULL;
    if (!o->targets || !given)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE, "samples with --targets have no labels: leave out %s",
                     given);
}

// Samples go out, and nothing else.
static int check_features(const struct options *o, struct error *err) {
    if (!o->features && (o->out || o->force))
        return error_set(err, STATUS_USAGE, "--out and --force belong to --features");
    if (!o->features)
        return STATUS_OK;
    if (!o->out)
        return error_set(err, STATUS_USAGE, "--features needs --out FILE");
    if (o->network.controller || o->print || o->top || o->json || o->confusion || o->per_class ||
        o->per_sample || o->min_top1 >= 0)
        return error_set(err, STATUS_USAGE,
                         "--features writes what a layer gives, and no predictions or figures");
    return STATUS_OK;
}

// A service has its samples from those who ask, and prints nothing.
static int check_serving(const struct options *o, struct error *err) {
    if (!o->model)
        return error_set(err, STATUS_USAGE, "--listen needs --model");
    if (o->data || o->files_from || o->picture_count > 0 || o->network.controller || o->targets)
        return error_set(err, STATUS_USAGE, "--listen has its pictures from those who ask");
    if (o->print || o->confusion || o->per_class || o->per_sample || o->reject || o->features ||
        o->min_top1 >= 0)
        return error_set(err, STATUS_USAGE, "--listen prints nothing");
    if (o->network.keys)
        return error_set(
            err, STATUS_USAGE,
            "--listen has no TLS, and no use for --keys; a proxy before it can have it");
    if (o->max_body == 0 || o->patience == 0)
        return error_set(err, STATUS_USAGE, "--max-body and --patience must be above 0");
    return STATUS_OK;
}

// Of a model in several processes one has the samples, and prints.
static int check_partitions(const struct options *o, struct error *err) {
    const char *other = o->network.listen       ? "--listen"
                        : o->network.controller ? "--follow"
                        : o->features           ? "--features"
                                                : NULL;
    return o->partitions > 1 && other
               ? error_set(err, STATUS_USAGE, "--partitions does not go with %s", other)
               : STATUS_OK;
}

static int check_options(const struct options *o, struct error *err) {
    int status = check_features(o, err);
    if (!status)
        status = check_partitions(o, err);
    if (!status)
        status = check_targets(o, err);
    if (status)
        return status;
    if (o->network.listen)
        return check_serving(o, err);
    if (o->network.port_file || o->max_body >= 0 || o->patience >= 0)
        return error_set(err, STATUS_USAGE, "--port-file, --max-body and --patience need --listen");
    if (o->network.controller)
        return check_following(o, err);
    if (!o->model && o->picture_count == 1 && !o->data)
        return error_set(err, STATUS_USAGE,
                         "--model is missing: give --model RUN --data %s for samples, or --model "
                         "RUN %s for a picture",
                         o->pictures[0], o->pictures[0]);
    if (!o->model)
        return error_set(err, STATUS_USAGE, "--model is missing, or --follow");
    if ((o->data != NULL) + (o->files_from != NULL) + (o->picture_count > 0) != 1)
        return error_set(err, STATUS_USAGE, "give either --data, --files-from or pictures");
    int to_stdout =
        option_is(o->confusion, "-") + option_is(o->per_class, "-") + option_is(o->per_sample, "-");
    if (to_stdout > 1)
        return error_set(err, STATUS_USAGE, "only one output can be '-'");
    if (to_stdout > 0 && (o->json || option_is(o->print, "predictions") || o->top))
        return error_set(err, STATUS_USAGE,
                         "an output that is '-' leaves no room for others on standard output");
    if (o->reject && !option_is(o->on_error, "skip"))
        return error_set(err, STATUS_USAGE, "--reject needs --on-error skip");
    if (option_is(o->print, "figures") && o->top)
        return error_set(err, STATUS_USAGE, "--top belongs to --print predictions");
    return STATUS_OK;
}

int options_check_reject(const struct options *o, struct error *err) {
    const char *const files[] = {o->data,      o->files_from, o->labels,     o->targets, o->model,
                                 o->confusion, o->per_class,  o->per_sample, o->out};
    int status = reject_check(o->reject, files, sizeof files / sizeof *files, err);
    return status ? status
                  : reject_check(o->reject, (const char *const *)o->pictures,
                                 (size_t)o->picture_count, err);
}

bool options_may_predict(const struct options *o) {
    return !option_is(o->print, "figures") && !option_is(o->confusion, "-") &&
           !option_is(o->per_class, "-") && !option_is(o->per_sample, "-");
}

bool options_want_predictions(const struct options *o) {
    return options_may_predict(o) &&
           (option_is(o->print, "predictions") || o->top || o->files_from || o->picture_count > 0 ||
            option_is(o->data, "-"));
}

enum label_from options_label_from(const struct options *o) {
    const char *text = o->label_from;
    enum label_from from = LABEL_DEFAULT;
    for (size_t i = 0; text && label_choices[i]; i++)
        if (option_is(text, label_choices[i]))
            from = (enum label_from)i;
    return from;
}

bool options_parse(struct options *o, int argc, char **argv, int *status, struct error *err) {
    const struct option_row rows[] = {
        HEADING("Input"),
        TEXT('m', "model", "DIR", &o->model, NULL, "a run, a checkpoint or its .safetensors file"),
        LIST_OF(0, "set", "LAYER.KEY=VALUE", &o->sets, model_key, "override a key of a layer"),
        TEXT('d', "data", "FILE", &o->data, NULL, "samples: any kind adam-prep reads, or -"),
        TEXT(0, "files-from", "FILE", &o->files_from, NULL, "paths of pictures, one a line, or -"),
        FLAG('0', "null", &o->null, "paths end in NUL"),
        TEXT(0, "from", "KIND", &o->from, NULL, "kind of --data, if it is not recognised"),
        TEXT(0, "labels", "FILE", &o->labels, NULL, "labels beside IDX or npy data"),
        TEXT(0, "targets", "FILE", &o->targets, NULL, "what samples have in the place of labels"),
        CHOICE(0, "label-from", "WHERE", &o->label_from, label_choices, "default",
               "source of the labels"),
        TEXT_OF(0, "ops", "CHAIN", &o->ops, ops_name, NULL, "operations before those of the model"),
        INT(0, "max-pixels", "N", &o->max_pixels, 1, 1e12, "100000000",
            "refuse larger pictures before decoding"),
        HEADING("Following a run"),
        TEXT(0, "follow", "DIR", &o->network.controller, NULL,
             "test a run of many processes: its folder, or its controller's address"),
        TIME(0, "every", "TIME", &o->every, "30s", "time between the starts of two tests"),
        TEXT(0, "name", "NAME", &o->network.name, "host-PID", "of this process, for people"),
        SECRET_ROWS(&o->network),
        HEADING("Service"),
        TEXT('l', "listen", "URL", &o->network.listen, NULL,
             "answer at http://HOST:PORT, or at a socket of systemd"),
        TEXT(0, "port-file", "FILE", &o->network.port_file, NULL, "write the URL there when bound"),
        BYTES(0, "max-body", "BYTES", &o->max_body, "32M", "refuse larger requests"),
        TIME(0, "patience", "TIME", &o->patience, "30s",
             "time for a request to arrive, and its answer to be taken"),
        HEADING("Output"),
        CHOICE(0, "print", "WHAT", &o->print, print_choices, NULL, "what goes to standard output"),
        INT('k', "top", "N", &o->top, 1, 1000000, "1", "print the N best classes of each sample"),
        FLAG(0, "json", &o->json, "print JSON instead of TSV"),
        TEXT(0, "confusion", "FILE", &o->confusion, NULL, "confusion matrix, TSV"),
        TEXT(0, "per-class", "FILE", &o->per_class, NULL, "precision and recall, TSV"),
        TEXT(0, "per-sample", "FILE", &o->per_sample, NULL, "all scores of each sample"),
        CHOICE(0, "format", "KIND", &o->format, format_choices, "tsv", "of --per-sample"),
        TEXT(0, "features", "LAYER", &o->features, NULL,
             "write what this layer gives, as samples to train on, to --out"),
        TEXT('o', "out", "FILE", &o->out, NULL, "of --features: .arec, .npy, .idx; - is arec"),
        FLAG('f', "force", &o->force, "replace the file of --out if it exists"),
        HEADING("Behaviour"),
        REAL(0, "min-top1", "SHARE", &o->min_top1, 0, 1, NULL, "exit with 1 below this accuracy"),
        CHOICE(0, "on-error", "WHAT", &o->on_error, error_choices, "stop",
               "at a damaged or unlabelled sample"),
        TEXT(0, "reject", "FILE", &o->reject, NULL, "list the skipped samples: path, reason"),
        INT('t', "threads", "N", &o->threads, 1, 1024, "all cores", "threads"),
        INT(0, "partitions", "N", &o->partitions, 1, CUT_PARTITIONS_MAX, "1: it is whole",
            "cut the model over N processes, each with a part of it"),
        INT('b', "batch", "N", &o->batch, 1, 65536, "32 or 256", "samples a pass of one thread"),
        FLAG(0, "exact", &o->exact, "compute in 32-bit floats, even if others are faster"),
        FLAG('q', "quiet", &o->quiet, "say nothing but errors"),
    };
    const struct command command = {
        .name = PROGRAM,
        .synopsis = "--model DIR --data FILE [options]\n--model DIR --files-from FILE [options]\n"
                    "--model DIR [options] PICTURE ...\n"
                    "--model DIR --data FILE --features LAYER --out FILE [options]\n"
                    "--model DIR --listen URL [options]\n--follow DIR --data FILE [options]",
        .about = "measure a model, or predict with it",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .operand = "FILE",
    };
    int operands;
    enum cli_next next = cli_parse(&command, argc, argv, &operands, err);
    if (next == CLI_RUN) {
        o->pictures = argv + operands, o->picture_count = argc - operands;
        *status = check_options(o, err);
    } else
        *status = next == CLI_FAIL ? STATUS_USAGE : STATUS_OK;
    return next == CLI_RUN && *status == STATUS_OK;
}
