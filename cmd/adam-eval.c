// adam-eval: a model's accuracy on labelled samples, or its predictions, one
// line each, as a filter, or as a service over HTTP; or the accuracy of a model that
// is being trained, again and again. Its parts are in cmd/adam-eval/.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "adam-eval/evaluation.h"
#include "adam-eval/features.h"
#include "adam-eval/following.h"
#include "adam-eval/serving.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/error.h"
#include "report/results.h"

typedef void table_writer(FILE *out, const struct tally *tally, const char *const *names);

static int write_table(const struct evaluation *run, const char *path, table_writer *write,
                       struct error *err) {
    struct textfile *file;
    int status = textfile_open(&file, path, err);
    if (status != STATUS_OK)
        return status;
    write(textfile_stream(file), &run->tally, evaluation_names(run));
    return textfile_close(file, err);
}

static int write_files(struct evaluation *run, struct error *err) {
    const struct options *o = run->o;
    int status = STATUS_OK;
    if (run->per_sample)
        status = textfile_close(run->per_sample, err);
    run->per_sample = NULL;
    if (status == STATUS_OK && o->confusion)
        status = write_table(run, o->confusion, results_confusion, err);
    if (status == STATUS_OK && o->per_class)
        status = write_table(
            run, o->per_class,
            run->tally.figure == FIGURE_TOP1 ? results_per_class : results_per_output, err);
    if (status == STATUS_OK && run->reject) {
        status = reject_close(run->reject, err);
        run->reject = NULL;
    }
    return status;
}

static bool prints_figures(const struct evaluation *run) {
    const struct options *o = run->o;
    return !run->predictions && !option_is(o->confusion, "-") && !option_is(o->per_class, "-") &&
           !option_is(o->per_sample, "-");
}

static void say_figures(const struct evaluation *run) {
    const struct tally *tally = &run->tally;
    double seconds = clock_seconds() - run->progress.started;
    if (tally->figure == FIGURE_MAP && tally->samples > 0)
        talk_note(PROGRAM, "mean average precision %.2f%% of %llu samples, %.0f samples/s",
                  100 * tally_figure(tally), (unsigned long long)tally->samples,
                  (double)run->told / seconds);
    else if (tally->figure == FIGURE_R2 && tally->samples > 0)
        talk_note(PROGRAM, "mean error %.4g, R2 %.4g of %llu samples, %.0f samples/s",
                  tally_mean_error(tally), tally_figure(tally), (unsigned long long)tally->samples,
                  (double)run->told / seconds);
    else if (tally->samples > 0)
        talk_note(PROGRAM, "top-1 %.2f%%, top-5 %.2f%% of %llu labelled samples, %.0f samples/s",
                  100 * tally_top1(tally), 100 * tally_top5(tally),
                  (unsigned long long)tally->samples, (double)run->told / seconds);
    if (run->skipped > 0)
        talk_note(PROGRAM, "skipped %llu of %llu samples", (unsigned long long)run->skipped,
                  (unsigned long long)(run->skipped + run->told));
}

// The exit status of a run that came to its end.
static int judge(const struct evaluation *run) {
    double wanted = run->o->min_top1, top1 = tally_top1(&run->tally);
    if (wanted >= 0 && !(top1 >= wanted)) {
        talk_note(PROGRAM, "top-1 %.6g is below --min-top1 %.6g", top1, wanted);
        return STATUS_SKIPPED;
    }
    return run->left_out ? STATUS_SKIPPED : STATUS_OK;
}

static int evaluate_run(struct evaluation *run, struct error *err) {
    const struct options *o = run->o;
    int status = evaluation_open(run, err);
    if (status == STATUS_OK)
        status = evaluation_predict(run, err);
    if (status == STATUS_OK && run->told == 0 && !run->left_out)
        status = error_set(err, STATUS_DATA, "the input holds no samples");
    if (status == STATUS_OK && evaluation_wants_labels(run) && run->tally.samples == 0)
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

static int evaluate_model(const struct options *o, struct error *err) {
    struct evaluation run = {.o = o, .list = -1, .predictions = options_want_predictions(o)};
    // An answer is out as soon as it is known, whoever reads.
    setvbuf(stdout, NULL, _IOLBF, 0);
    int status = evaluate_run(&run, err);
    evaluation_close(&run);
    return status;
}

int main(int argc, char **argv) {
    struct options o = {
        .threads = cpu_count(),
        .partitions = 1,
        .min_top1 = -1,
        .max_pixels = 100000000,
        .on_error = "stop",
        .format = "tsv",
        .label_from = "default",
        .every = 30,
        .max_body = -1,
        .patience = -1,
    };
    struct error err = {0};
    int status;
    talk_begin(_exit);
    network_default(&o.network);
    if (options_parse(&o, argc, argv, &status, &err))
        status = o.network.listen       ? serve_until_stopped(&o, &err)
                 : o.network.controller ? follow_until_done(&o, &err)
                 : o.features           ? features_write(&o, &err)
                                        : evaluate_model(&o, &err);
    if (err.status != STATUS_OK)
        talk_error(PROGRAM, &err);
    free(o.sets.items);
    return talk_finish(PROGRAM, status);
}
