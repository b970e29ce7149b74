#include "adam-eval/evaluation.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "kernels/kernels.h"
#include "report/results.h"
#include "train/goal.h"
#include "train/partition_processes.h"

const char *const *evaluation_names(const struct evaluation *run) {
    return (const char *const *)run->trained.names.names;
}

bool evaluation_numbers(const struct evaluation *run) {
    return model_goal(run->model) == GOAL_NUMBERS;
}

bool evaluation_wants_labels(const struct evaluation *run) {
    const struct options *o = run->o;
    bool only_scores = o->per_sample && !o->confusion && !o->per_class && o->min_top1 < 0;
    return (!run->predictions && !only_scores) || o->confusion || o->per_class || o->min_top1 >= 0;
}

// --- opening -----------------------------------------------------------------

// In partitions each process reads its own parameters, of the same checkpoint, whatever a run that
// goes on saves meanwhile.
static int open_trained(struct evaluation *run, struct error *err) {
    const struct options *o = run->o;
    if (o->partitions <= 1)
        return trained_open(&run->trained, o->model, o->sets.items, o->sets.count, err);
    run->checkpoint = checkpoint_resolve(o->model);
    return trained_open_model(&run->trained, run->checkpoint ? run->checkpoint : o->model,
                              o->sets.items, o->sets.count, err);
}

int evaluation_open_model(struct evaluation *run, struct error *err) {
    const struct options *o = run->o;
    struct trained *trained = &run->trained;
    int status = open_trained(run, err);
    if (status != STATUS_OK)
        return status;
    run->model = trained->checkpoint.model;
    run->parameters = trained->checkpoint.parameters;
    status = classes_copy(&run->classes, &trained->names, err);
    if (status == STATUS_OK)
        status = tally_open(&run->tally, run->model, o->targets ? trained->names.count : 0, err);
    if (status == STATUS_OK && o->confusion)
        status = tally_confusion(&run->tally, err);
    return status;
}

int evaluation_open_ops(struct evaluation *run, struct error *err) {
    const struct options *o = run->o;
    size_t offset = 0, length = 0;
    if (o->ops && ops_parse(&run->before, o->ops, OPS_DETERMINISTIC, &offset, &length, err)) {
        char why[ERROR_TEXT];
        snprintf(why, sizeof why, "%s", err->text);
        return error_set(err, STATUS_USAGE, "--ops: %.1000s\n    %.500s\n    %*s%.*s", why, o->ops,
                         (int)(offset < 500 ? offset : 500), "", (int)(length < 40 ? length : 40),
                         "^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~");
    }
    return STATUS_OK;
}

// Pictures of the command line are a list like any other: NUL-separated, in a
// file without a name, which `path` (32 bytes) then names.
static int list_pictures(struct evaluation *run, char *path, struct error *err) {
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

int evaluation_open_source(struct evaluation *run, struct error *err) {
    const struct options *o = run->o;
    const char *list = o->files_from;
    char own_list[32];
    struct source_options options = {
        .from = o->from,
        .labels = o->labels,
        .targets = o->targets,
        .label_from = evaluation_numbers(run) ? LABEL_NO : options_label_from(o),
        .separator = o->null || o->picture_count > 0 ? 0 : '\n',
        .each_named = o->picture_count > 0,
        .decode = {.max_pixels = (uint64_t)o->max_pixels},
        .hooks = {&run->talk, talk_stop, talk_say},
    };
    int status = STATUS_OK;
    run->talk = (struct talk){PROGRAM, o->quiet};
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
    run->by_path = option_is(kind, "list") || option_is(kind, "folder") || option_is(kind, "image");
    if (option_is(kind, "image") && options_may_predict(o))
        run->predictions = true; // one picture has no figures
    int targets = source_targets(run->source);
    return targets > 0 || evaluation_wants_labels(run)
               ? goal_check(run->model, o->data ? o->data : o->files_from, targets, err)
               : STATUS_OK;
}

static int open_outputs(struct evaluation *run, struct error *err) {
    const struct options *o = run->o;
    int status = STATUS_OK, k = o->top ? (int)o->top : 1;
    run->top = mem_array((size_t)k, sizeof *run->top);
    if (!run->top)
        return error_nomem(err);
    if (o->reject)
        status = options_check_reject(o, err);
    if (status == STATUS_OK && o->reject)
        status = reject_open(&run->reject, o->reject, err);
    if (status == STATUS_OK && o->per_sample)
        status = textfile_open(&run->per_sample, o->per_sample, err);
    if (status == STATUS_OK && run->per_sample && !option_is(o->format, "json"))
        results_scores_head(textfile_stream(run->per_sample), evaluation_numbers(run),
                            run->trained.names.count, evaluation_names(run));
    return status;
}

int evaluation_open(struct evaluation *run, struct error *err) {
    int status = evaluation_open_model(run, err);
    if (status == STATUS_OK)
        status = evaluation_open_ops(run, err);
    if (status == STATUS_OK)
        status = evaluation_open_source(run, err);
    return status == STATUS_OK ? open_outputs(run, err) : status;
}

void evaluation_close(struct evaluation *run) {
    partition_processes_close(run->processes);
    free(run->checkpoint);
    textfile_abort(run->per_sample);
    reject_close(run->reject, NULL);
    free(run->top);
    tally_free(&run->tally);
    source_close(run->source);
    if (run->list >= 0)
        close(run->list);
    ops_free(run->before);
    classes_free(&run->classes);
    trained_close(&run->trained);
}

// --- running -----------------------------------------------------------------

static void show_progress(struct evaluation *run) {
    struct progress *progress = &run->progress;
    if (run->predictions || !progress_due(progress))
        return;
    double seconds = clock_seconds() - progress->started;
    double rate = (double)run->told / seconds;
    if (run->tally.figure == FIGURE_TOP1)
        progress_line(progress, "%llu samples, %.0f/s, top-1 %.2f%%", (unsigned long long)run->told,
                      rate, 100 * tally_top1(&run->tally));
    else
        progress_line(progress, "%llu samples, %.0f/s", (unsigned long long)run->told, rate);
}

static const char *key_of(const struct evaluation *run, const struct sample *sample) {
    return run->by_path ? sample->path : sample->key;
}

static int write_scores(struct evaluation *run, const char *key, int32_t label, const float *scores,
                        struct error *err) {
    FILE *out = textfile_stream(run->per_sample);
    bool json = option_is(run->o->format, "json");
    int classes = run->trained.names.count;
    return evaluation_numbers(run)
               ? results_number_row(out, key, scores, classes, evaluation_names(run), json, err)
               : results_scores(out, key, label, scores, classes, evaluation_names(run), json, err);
}

static int print_prediction(struct evaluation *run, const char *key, int32_t label,
                            const float *scores, struct error *err) {
    const struct options *o = run->o;
    int classes = run->trained.names.count;
    int k = o->top > classes ? classes : o->top ? (int)o->top : 1;
    if (evaluation_numbers(run))
        return results_numbers(stdout, key, scores, classes, evaluation_names(run), o->json, err);
    scores_top(scores, classes, run->top, k);
    return results_prediction(stdout, key, label, scores, run->top, k, evaluation_names(run),
                              o->json, err);
}

static int tell_sample(void *self, const struct sample *sample, const float *scores,
                       struct error *err) {
    struct evaluation *run = self;
    const struct options *o = run->o;
    const char *key = key_of(run, sample);
    int status = STATUS_OK;
    run->told++;
    if (o->network.controller && stop_requested())
        return error_set(err, STATUS_STOPPED, "stopped");
    if (run->per_sample)
        status = write_scores(run, key, sample->label, scores, err);
    if (status == STATUS_OK && run->predictions) {
        status = print_prediction(run, key, sample->label, scores, err);
        if (ferror(stdout))
            return error_errno(err, STATUS_IO, "cannot write to standard output");
    }
    show_progress(run);
    return status;
}

int evaluation_skip(void *self, const struct sample *sample, const struct error *why,
                    struct error *err) {
    struct evaluation *run = self;
    run->skipped += sample->missing;
    run->left_out = true;
    if (!run->o->quiet) {
        progress_clear(&run->progress);
        talk_note(PROGRAM, "skipped: %s", why->text);
    }
    return run->reject ? reject_put(run->reject, sample->path ? sample->path : "", why->text, err)
                       : STATUS_OK;
}

struct scoring_config evaluation_scoring(const struct evaluation *run) {
    return (struct scoring_config){
        .model = run->model,
        .kernels = kernels_best(),
        .parameters = run->parameters,
        .before = run->before,
        .input = run->trained.input,
        .decode = {.max_pixels = (uint64_t)run->o->max_pixels},
        .batch = (int)run->o->batch,
        .exact = run->o->exact,
    };
}

static int read_partition(void *self, const struct cut *cut, int partition, float *own,
                          struct error *err) {
    const struct evaluation *run = self;
    return checkpoint_load_portion(own, run->checkpoint, &run->trained.checkpoint, cut, partition,
                                   err);
}

static void say_waiting(void *self, int partition, int process) {
    struct evaluation *run = self;
    progress_clear(&run->progress);
    talk_note(PROGRAM, "waits for partition %d of the model (process %d)", partition, process);
}

static int open_processes(struct evaluation *run, struct predict_config *config,
                          struct error *err) {
    config->scoring.batch = config->scoring.batch ? config->scoring.batch : SCORING_BATCH;
    const struct partition_processes_config processes = {
        .model = run->model,
        .kernels = config->scoring.kernels,
        .partitions = (int)run->o->partitions,
        .lanes = config->threads,
        .batch = config->scoring.batch,
        .targets = source_targets(run->source),
        .read = read_partition,
        .waits = say_waiting,
        .self = run,
    };
    int status = partition_processes_open(&run->processes, &processes, err);
    config->scoring.processes = run->processes;
    return status;
}

int evaluation_predict(struct evaluation *run, struct error *err) {
    const struct options *o = run->o;
    bool from_pipe = option_is(o->data, "-") || option_is(o->files_from, "-");
    struct predict_config config = {
        .scoring = evaluation_scoring(run),
        .source = run->source,
        .classes = &run->classes,
        .known = run->trained.checkpoint.classes.count,
        .descriptor = from_pipe ? STDIN_FILENO : -1,
        .threads = (int)o->threads,
        .tally = &run->tally,
        .labelled = evaluation_wants_labels(run),
        .each = tell_sample,
        .skip = option_is(o->on_error, "skip") ? evaluation_skip : NULL,
        .self = run,
    };
    progress_start(&run->progress, o->quiet);
    int status = o->partitions > 1 ? open_processes(run, &config, err) : STATUS_OK;
    if (status == STATUS_OK)
        status = predict(&config, err);
    progress_clear(&run->progress);
    return status;
}
