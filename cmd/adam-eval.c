// adam-eval: a model's accuracy on labelled samples, or its predictions, one
// line each, as a filter; or the accuracy of a model that is being trained, again
// and again.
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/network.h"
#include "cli/option.h"
#include "cli/progress.h"
#include "cli/talk.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/mem.h"
#include "member/place.h"
#include "model/prepared.h"
#include "prep/reject.h"
#include "report/results.h"
#include "role/follow.h"
#include "store/textfile.h"
#include "train/checkpoint.h"
#include "train/metrics.h"
#include "train/model_ops.h"
#include "train/predict.h"

static const char name[] = "adam-eval";

enum { BATCH = 32 }; // samples a pass, unless more are faster

static const char *const print_choices[] = {"figures", "predictions", NULL};
static const char *const error_choices[] = {"stop", "skip", NULL};
static const char *const format_choices[] = {"tsv", "json", NULL};
static const char *const label_choices[] = {"default", "parent", "column", "no", NULL};

struct options {
    const char *model, *data, *files_from, *from, *labels, *label_from, *ops;
    const char *print, *confusion, *per_class, *per_sample, *format, *on_error, *reject;
    struct option_list sets;
    char **pictures; // operands
    int picture_count;
    int64_t top, threads, batch, max_pixels;
    double min_top1, every;
    bool null, json, exact, quiet;
    struct network network; // its controller is whom to follow
};

// One evaluation: what is open, and what was counted.
struct run {
    const struct options *o;
    bool predictions; // what goes to standard output line by line
    struct checkpoint checkpoint;
    const struct model *model; // of it, or of the run that is followed
    const float *parameters;
    struct classes names;   // of the model
    struct classes classes; // of the source: the model's, then what else it has
    struct ops *before, *input;
    struct source *source;
    int list;     // of the command line's pictures, or -1
    bool by_path; // samples are files: named by their paths
    struct tally tally;
    int *top;
    struct textfile *per_sample;
    struct reject *reject;
    struct progress progress;
    uint64_t told, skipped; // samples
    bool left_out;          // something was, be it no sample
    struct talk talk;
};

static bool is(const char *text, const char *what) {
    return text && !strcmp(text, what);
}

static const char *const *names_of(const struct run *run) {
    return (const char *const *)run->names.names;
}

// --- options -----------------------------------------------------------------

// What is followed is tested on the same samples again and again, a line each time.
static int check_following(const struct options *o, struct error *err) {
    if (o->model || o->sets.count > 0)
        return error_set(err, STATUS_USAGE, "a run that is followed has its own model");
    if (!o->data || is(o->data, "-") || o->files_from || o->picture_count > 0)
        return error_set(err, STATUS_USAGE, "--follow needs --data, which can be read again");
    if (o->top || is(o->print, "predictions") || o->confusion || o->per_class || o->per_sample ||
        o->reject || o->min_top1 >= 0)
        return error_set(err, STATUS_USAGE, "--follow prints figures alone");
    return STATUS_OK;
}

static int check_options(const struct options *o, struct error *err) {
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
    int to_stdout = is(o->confusion, "-") + is(o->per_class, "-") + is(o->per_sample, "-");
    if (to_stdout > 1)
        return error_set(err, STATUS_USAGE, "only one output can be '-'");
    if (to_stdout > 0 && (o->json || is(o->print, "predictions") || o->top))
        return error_set(err, STATUS_USAGE,
                         "an output that is '-' leaves no room for others on standard output");
    if (o->reject && !is(o->on_error, "skip"))
        return error_set(err, STATUS_USAGE, "--reject needs --on-error skip");
    if (is(o->print, "figures") && o->top)
        return error_set(err, STATUS_USAGE, "--top belongs to --print predictions");
    return STATUS_OK;
}

// Whether standard output is free for predictions.
static bool may_predict(const struct options *o) {
    return !is(o->print, "figures") && !is(o->confusion, "-") && !is(o->per_class, "-") &&
           !is(o->per_sample, "-");
}

// Samples that come through a pipe or as paths ask for an answer each, a data
// set for its figures; --print and --top say otherwise.
static bool wants_predictions(const struct options *o) {
    return may_predict(o) && (is(o->print, "predictions") || o->top || o->files_from ||
                              o->picture_count > 0 || is(o->data, "-"));
}

// Every sample must have a label where somebody asks what labels decide.
static bool wants_labels(const struct run *run) {
    const struct options *o = run->o;
    bool only_scores = o->per_sample && !o->confusion && !o->per_class && o->min_top1 < 0;
    return (!run->predictions && !only_scores) || o->confusion || o->per_class || o->min_top1 >= 0;
}

static enum label_from label_from(const char *text) {
    enum label_from from = LABEL_DEFAULT;
    for (size_t i = 0; text && label_choices[i]; i++)
        if (is(text, label_choices[i]))
            from = (enum label_from)i;
    return from;
}

// --- opening -----------------------------------------------------------------

static int open_model(struct run *run, struct error *err) {
    const struct options *o = run->o;
    struct checkpoint *c = &run->checkpoint;
    int status = checkpoint_load(c, o->model, o->sets.items, o->sets.count, false, err);
    if (status != STATUS_OK)
        return status;
    run->model = c->model;
    run->parameters = c->parameters;
    int classes = model_classes(c->model);
    status = predict_classes(&run->names, &c->classes, classes, err);
    if (status == STATUS_OK)
        status = predict_classes(&run->classes, &c->classes, classes, err);
    if (status != STATUS_OK)
        return error_context(err, "%s", o->model);
    status = tally_init(&run->tally, classes, err);
    if (status == STATUS_OK && o->confusion)
        status = tally_confusion(&run->tally, err);
    return status;
}

static int open_ops(struct run *run, struct error *err) {
    const struct options *o = run->o;
    size_t offset = 0, length = 0;
    if (o->ops && ops_parse(&run->before, o->ops, OPS_DETERMINISTIC, &offset, &length, err)) {
        char why[ERROR_TEXT];
        snprintf(why, sizeof why, "%s", err->text);
        return error_set(err, STATUS_USAGE, "--ops: %.1000s\n    %.500s\n    %*s%.*s", why, o->ops,
                         (int)(offset < 500 ? offset : 500), "", (int)(length < 40 ? length : 40),
                         "^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~");
    }
    return model_ops_open(&run->input, run->model, err);
}

// Pictures of the command line are a list like any other: NUL-separated, in a
// file without a name, which `path` (32 bytes) then names.
static int list_pictures(struct run *run, char *path, struct error *err) {
    const struct options *o = run->o;
    run->list = memfd_create("pictures", MFD_CLOEXEC);
    FILE *file = run->list < 0 ? NULL : fdopen(dup(run->list), "w");
    if (!file)
        return error_errno(err, STATUS_IO, "cannot list the pictures");
    for (int i = 0; i < o->picture_count; i++)
        fprintf(file, "%s%c", o->pictures[i], 0);
    bool written = !ferror(file);
    if (fclose(file) != 0 || !written || lseek(run->list, 0, SEEK_SET) < 0)
        return error_errno(err, STATUS_IO, "cannot list the pictures");
    snprintf(path, 32, "/dev/fd/%d", run->list);
    return STATUS_OK;
}

static int open_source(struct run *run, struct error *err) {
    const struct options *o = run->o;
    const char *list = o->files_from;
    char own_list[32];
    struct source_options options = {
        .from = o->from,
        .labels = o->labels,
        .label_from = label_from(o->label_from),
        .separator = o->null || o->picture_count > 0 ? 0 : '\n',
        .each_named = o->picture_count > 0,
        .decode = {.max_pixels = (uint64_t)o->max_pixels},
        .hooks = {&run->talk, talk_stop, talk_say},
    };
    int status = STATUS_OK;
    run->talk = (struct talk){name, o->quiet};
    if (o->picture_count > 0) {
        status = list_pictures(run, own_list, err);
        list = own_list;
    }
    if (status == STATUS_OK)
        status = list ? source_open_list(&run->source, list, &options, &run->classes, err)
                      : source_open(&run->source, o->data, &options, &run->classes, err);
    if (status != STATUS_OK)
        return status;
    const char *kind = source_kind(run->source);
    run->by_path = is(kind, "list") || is(kind, "folder") || is(kind, "image");
    if (is(kind, "image") && may_predict(o))
        run->predictions = true; // one picture has no figures
    return STATUS_OK;
}

static int open_outputs(struct run *run, struct error *err) {
    const struct options *o = run->o;
    int status = STATUS_OK, k = o->top ? (int)o->top : 1;
    run->top = mem_array((size_t)k, sizeof *run->top);
    if (!run->top)
        return error_nomem(err);
    if (o->reject)
        status = reject_open(&run->reject, o->reject, err);
    if (status == STATUS_OK && o->per_sample)
        status = textfile_open(&run->per_sample, o->per_sample, err);
    if (status == STATUS_OK && run->per_sample && !is(o->format, "json"))
        results_scores_head(textfile_stream(run->per_sample), run->names.count, names_of(run));
    return status;
}

static int open_all(struct run *run, struct error *err) {
    int status = open_model(run, err);
    if (status == STATUS_OK)
        status = open_ops(run, err);
    if (status == STATUS_OK)
        status = open_source(run, err);
    return status == STATUS_OK ? open_outputs(run, err) : status;
}

static void close_all(struct run *run) {
    textfile_abort(run->per_sample);
    reject_close(run->reject, NULL);
    free(run->top);
    tally_free(&run->tally);
    source_close(run->source);
    if (run->list >= 0)
        close(run->list);
    ops_free(run->before);
    ops_free(run->input);
    classes_free(&run->classes);
    classes_free(&run->names);
    checkpoint_free(&run->checkpoint);
}

// --- running -----------------------------------------------------------------

static void show_progress(struct run *run) {
    struct progress *progress = &run->progress;
    if (run->predictions || !progress_due(progress))
        return;
    double seconds = clock_seconds() - progress->started;
    progress_line(progress, "%llu samples, %.0f/s, top-1 %.2f%%", (unsigned long long)run->told,
                  (double)run->told / seconds, 100 * tally_top1(&run->tally));
}

static const char *key_of(const struct run *run, const struct sample *sample) {
    return run->by_path ? sample->path : sample->key;
}

static int tell_sample(void *self, const struct sample *sample, const float *scores,
                       struct error *err) {
    struct run *run = self;
    const struct options *o = run->o;
    const char *key = key_of(run, sample);
    int status = STATUS_OK, classes = run->names.count;
    int k = o->top > classes ? classes : o->top ? (int)o->top : 1;
    run->told++;
    if (o->network.controller && stop_requested())
        return error_set(err, STATUS_STOPPED, "stopped");
    if (run->per_sample)
        status = results_scores(textfile_stream(run->per_sample), key, sample->label, scores,
                                classes, names_of(run), is(o->format, "json"), err);
    if (status == STATUS_OK && run->predictions) {
        scores_top(scores, classes, run->top, k);
        status = results_prediction(stdout, key, sample->label, scores, run->top, k, names_of(run),
                                    o->json, err);
        if (ferror(stdout))
            return error_errno(err, STATUS_IO, "cannot write to standard output");
    }
    show_progress(run);
    return status;
}

static int tell_skipped(void *self, const struct sample *sample, const struct error *why,
                        struct error *err) {
    struct run *run = self;
    run->skipped += sample->missing;
    run->left_out = true;
    if (!run->o->quiet) {
        progress_clear(&run->progress);
        talk_note(name, "skipped: %s", why->text);
    }
    return run->reject ? reject_put(run->reject, sample->path ? sample->path : "", why->text, err)
                       : STATUS_OK;
}

static int run_predict(struct run *run, struct error *err) {
    const struct options *o = run->o;
    bool from_pipe = is(o->data, "-") || is(o->files_from, "-");
    struct predict_config config = {
        .model = run->model,
        .kernels = kernels_best(),
        .parameters = run->parameters,
        .source = run->source,
        .classes = &run->classes,
        .descriptor = from_pipe ? STDIN_FILENO : -1,
        .before = run->before,
        .input = run->input,
        .decode = {.max_pixels = (uint64_t)o->max_pixels},
        .batch = o->batch ? (int)o->batch : prepared_batch(run->model, kernels_best(), BATCH),
        .exact = o->exact,
        .threads = (int)o->threads,
        .tally = &run->tally,
        .labelled = wants_labels(run),
        .each = tell_sample,
        .skip = is(o->on_error, "skip") ? tell_skipped : NULL,
        .self = run,
    };
    progress_start(&run->progress, o->quiet);
    int status = predict(&config, err);
    progress_clear(&run->progress);
    return status;
}

// --- results -----------------------------------------------------------------

typedef void table_writer(FILE *out, const struct tally *tally, const char *const *names);

static int write_table(const struct run *run, const char *path, table_writer *write,
                       struct error *err) {
    struct textfile *file;
    int status = textfile_open(&file, path, err);
    if (status != STATUS_OK)
        return status;
    write(textfile_stream(file), &run->tally, names_of(run));
    return textfile_close(file, err);
}

static int write_files(struct run *run, struct error *err) {
    const struct options *o = run->o;
    int status = STATUS_OK;
    if (run->per_sample)
        status = textfile_close(run->per_sample, err);
    run->per_sample = NULL;
    if (status == STATUS_OK && o->confusion)
        status = write_table(run, o->confusion, results_confusion, err);
    if (status == STATUS_OK && o->per_class)
        status = write_table(run, o->per_class, results_per_class, err);
    if (status == STATUS_OK && run->reject) {
        status = reject_close(run->reject, err);
        run->reject = NULL;
    }
    return status;
}

static bool prints_figures(const struct run *run) {
    const struct options *o = run->o;
    return !run->predictions && !is(o->confusion, "-") && !is(o->per_class, "-") &&
           !is(o->per_sample, "-");
}

static void say_figures(const struct run *run) {
    const struct tally *tally = &run->tally;
    double seconds = clock_seconds() - run->progress.started;
    if (tally->samples > 0)
        talk_note(name, "top-1 %.2f%%, top-5 %.2f%% of %llu labelled samples, %.0f samples/s",
                  100 * tally_top1(tally), 100 * tally_top5(tally),
                  (unsigned long long)tally->samples, (double)run->told / seconds);
    if (run->skipped > 0)
        talk_note(name, "skipped %llu of %llu samples", (unsigned long long)run->skipped,
                  (unsigned long long)(run->skipped + run->told));
}

// The exit status of a run that came to its end.
static int judge(const struct run *run) {
    double wanted = run->o->min_top1, top1 = tally_top1(&run->tally);
    if (wanted >= 0 && !(top1 >= wanted)) {
        talk_note(name, "top-1 %.6g is below --min-top1 %.6g", top1, wanted);
        return STATUS_SKIPPED;
    }
    return run->left_out ? STATUS_SKIPPED : STATUS_OK;
}

static int evaluate_run(struct run *run, struct error *err) {
    const struct options *o = run->o;
    int status = open_all(run, err);
    if (status == STATUS_OK)
        status = run_predict(run, err);
    if (status == STATUS_OK && run->told == 0 && !run->left_out)
        status = error_set(err, STATUS_DATA, "the input holds no samples");
    if (status == STATUS_OK && wants_labels(run) && run->tally.samples == 0)
        status = error_set(err, STATUS_DATA, "there is no sample to count");
    if (status == STATUS_OK)
        status = write_files(run, err);
    if (status == STATUS_OK && prints_figures(run))
        status = results_figures(stdout, &run->tally, run->skipped, o->json, err);
    if (status != STATUS_OK)
        return status;
    if (!o->quiet)
        say_figures(run);
    return judge(run);
}

// --- following ---------------------------------------------------------------

static void say_waiting(void *self, const char *text) {
    (void)self;
    talk_note(name, "%s", text);
}

static int follow_controller(struct follow **follow, const struct options *o,
                             const struct secrets *keys, const char *own_name, struct error *err) {
    const struct follow_options options = {
        .member = {.controller = o->network.controller,
                   .name = own_name,
                   .threads = (uint32_t)o->threads,
                   .keys = keys,
                   .insecure = o->network.insecure,
                   .hooks = {.say = o->quiet ? NULL : say_waiting}},
        .every = o->every,
        .stop = stop_requested,
    };
    return follow_open(follow, &options, err);
}

// As the lines of a run's metrics (adam-metrics(5)).
static int print_test(const struct run *run, const struct follow_copy *copy, double seconds,
                      struct error *err) {
    const struct tally *tally = &run->tally;
    double loss = tally_loss(tally);
    json_t *fields = json_pack(
        "{s:I, s:f, s:I, s:f, s:f, s:o, s:I, s:f}", "step", (json_int_t)copy->step, "epoch",
        copy->epoch, "samples", (json_int_t)copy->samples, "top1", tally_top1(tally), "top5",
        tally_top5(tally), "loss", isfinite(loss) ? json_real(loss) : json_null(), "samples_tested",
        (json_int_t)tally->samples, "seconds", seconds);
    char *line = fields ? metrics_line("evaluator", (int)copy->rank, "eval", fields) : NULL;
    if (!line)
        return error_nomem(err);
    puts(line);
    free(line);
    return fflush(stdout) ? error_errno(err, STATUS_IO, "cannot write to standard output")
                          : STATUS_OK;
}

static int test_samples(struct run *run, const struct classes *names, struct error *err) {
    int classes = model_classes(run->model);
    int status = tally_init(&run->tally, classes, err);
    if (status == STATUS_OK)
        status = open_ops(run, err);
    if (status == STATUS_OK && names->count > 0)
        status = predict_classes(&run->classes, names, classes, err);
    if (status == STATUS_OK)
        status = open_source(run, err);
    run->predictions = false;
    if (status == STATUS_OK)
        status = run_predict(run, err);
    if (status == STATUS_OK && run->tally.samples == 0)
        status = error_set(err, STATUS_DATA, "%s: there is no sample to count", run->o->data);
    return status;
}

// Samples are read anew, so that the data may be of any kind and size.
static int test_copy(const struct options *o, const struct follow_copy *copy, bool *skipped,
                     struct error *err) {
    struct run run = {.o = o, .list = -1, .model = copy->model, .parameters = copy->parameters};
    double before = clock_seconds();
    int status = test_samples(&run, copy->names, err);
    if (status == STATUS_OK)
        status = print_test(&run, copy, clock_seconds() - before, err);
    if (status == STATUS_OK && !o->quiet)
        talk_note(name, "epoch %.4g: top-1 %.2f%% of %llu samples, loss %.4g", copy->epoch,
                  100 * tally_top1(&run.tally), (unsigned long long)run.tally.samples,
                  tally_loss(&run.tally));
    *skipped |= run.left_out;
    close_all(&run);
    return status;
}

static int follow_run(const struct options *o, struct error *err) {
    struct secrets *keys = NULL;
    struct follow *follow = NULL;
    struct follow_copy copy = {0};
    bool skipped = false;
    char room[NETWORK_NAME_MAX];
    stop_on_signals(true);
    int status = place_keys(&keys, o->network.keys, err);
    if (status == STATUS_OK)
        status = follow_controller(&follow, o, keys, network_name(&o->network, room), err);
    while (status == STATUS_OK && !copy.last) {
        status = follow_next(follow, &copy, err);
        if (status == STATUS_OK)
            status = test_copy(o, &copy, &skipped, err);
    }
    follow_close(follow);
    secrets_close(keys);
    return status == STATUS_OK && skipped ? STATUS_SKIPPED : status;
}

static int evaluate_model(const struct options *o, struct error *err) {
    struct run run = {.o = o, .list = -1, .predictions = wants_predictions(o)};
    // An answer is out as soon as it is known, whoever reads.
    setvbuf(stdout, NULL, _IOLBF, 0);
    int status = evaluate_run(&run, err);
    close_all(&run);
    return status;
}

// Whether to go on: the options are in `o`. Else *status is how to end.
static bool parse(struct options *o, int argc, char **argv, int *status, struct error *err) {
    const struct option_row rows[] = {
        HEADING("Input"),
        TEXT('m', "model", "DIR", &o->model, NULL, "a run, a checkpoint or its .safetensors file"),
        LIST_OF(0, "set", "LAYER.KEY=VALUE", &o->sets, model_key, "override a key of a layer"),
        TEXT('d', "data", "FILE", &o->data, NULL, "samples: any kind adam-prep reads, or -"),
        TEXT(0, "files-from", "FILE", &o->files_from, NULL, "paths of pictures, one a line, or -"),
        FLAG('0', "null", &o->null, "paths end in NUL"),
        TEXT(0, "from", "KIND", &o->from, NULL, "kind of --data, if it is not recognised"),
        TEXT(0, "labels", "FILE", &o->labels, NULL, "labels beside IDX or npy data"),
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
        HEADING("Output"),
        CHOICE(0, "print", "WHAT", &o->print, print_choices, NULL, "what goes to standard output"),
        INT('k', "top", "N", &o->top, 1, 1000000, "1", "print the N best classes of each sample"),
        FLAG(0, "json", &o->json, "print JSON instead of TSV"),
        TEXT(0, "confusion", "FILE", &o->confusion, NULL, "confusion matrix, TSV"),
        TEXT(0, "per-class", "FILE", &o->per_class, NULL, "precision and recall, TSV"),
        TEXT(0, "per-sample", "FILE", &o->per_sample, NULL, "all scores of each sample"),
        CHOICE(0, "format", "KIND", &o->format, format_choices, "tsv", "of --per-sample"),
        HEADING("Behaviour"),
        REAL(0, "min-top1", "SHARE", &o->min_top1, 0, 1, NULL, "exit with 1 below this accuracy"),
        CHOICE(0, "on-error", "WHAT", &o->on_error, error_choices, "stop",
               "at a damaged or unlabelled sample"),
        TEXT(0, "reject", "FILE", &o->reject, NULL, "list the skipped samples: path, reason"),
        INT('t', "threads", "N", &o->threads, 1, 1024, "all cores", "threads"),
        INT('b', "batch", "N", &o->batch, 1, 65536, "32 or 256", "samples a pass of one thread"),
        FLAG(0, "exact", &o->exact, "compute in 32-bit floats, even if others are faster"),
        FLAG('q', "quiet", &o->quiet, "say nothing but errors"),
    };
    const struct command command = {
        .name = name,
        .synopsis = "--model DIR --data FILE [options]\n--model DIR --files-from FILE [options]\n"
                    "--model DIR [options] PICTURE ...\n--follow DIR --data FILE [options]",
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

int main(int argc, char **argv) {
    struct options o = {
        .threads = cpu_count(),
        .min_top1 = -1,
        .max_pixels = 100000000,
        .on_error = "stop",
        .format = "tsv",
        .label_from = "default",
        .every = 30,
    };
    struct error err = {0};
    int status;
    talk_begin();
    network_default(&o.network);
    if (parse(&o, argc, argv, &status, &err))
        status = o.network.controller ? follow_run(&o, &err) : evaluate_model(&o, &err);
    if (err.status != STATUS_OK)
        talk_error(name, &err);
    free(o.sets.items);
    return talk_finish(name, status);
}
