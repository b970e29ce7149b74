// adam-ctl plot, report: draws runs.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "adam-ctl/subcommand.h"
#include "cli/talk.h"
#include "core/error.h"
#include "report/curves.h"
#include "report/page.h"
#include "run/settings.h"
#include "store/textfile.h"

static const char *const x_choices[] = {"both", "epoch", "time", NULL};

static enum curves_x x_axis(const char *text) {
    if (!strcmp(text, "epoch"))
        return CURVES_EPOCH;
    return strcmp(text, "time") ? CURVES_BOTH : CURVES_TIME;
}

// SVG is text; a name that says it is a picture of pixels would mislead whoever opens it.
static int refuse_pixels(const char *path, struct error *err) {
    static const char *const kinds[] = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf", NULL};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && kinds[i]; i++)
        if (!strcasecmp(dot, kinds[i]))
            return error_set(err, STATUS_USAGE, "%s: plot draws SVG; name it %.*s.svg", path,
                             (int)(dot - path), path);
    return STATUS_OK;
}

static int curves_settings(struct curves_options *curves, const struct picture_options *options,
                           struct error *err) {
    *curves = (struct curves_options){.x = x_axis(options->x)};
    int status = refuse_pixels(options->output, err);
    for (size_t i = 0; i < options->range.count && status == STATUS_OK; i++)
        status = curves_range(curves, options->range.items[i], err);
    return status;
}

static int write_curves(const struct picture_options *options, const struct curves_options *curves,
                        const struct history *runs, size_t count, struct error *err) {
    struct textfile *file;
    int status = textfile_open(&file, options->output, err);
    if (status != STATUS_OK)
        return status;
    status = curves_write(textfile_stream(file), runs, count, curves, err);
    if (status == STATUS_OK)
        return textfile_close(file, err);
    textfile_abort(file);
    return status;
}

static int run_plot(const struct subcommand *subcommand, char **operands, int count,
                    struct error *err) {
    const struct picture_options *options = subcommand->options;
    struct curves_options curves;
    int status = curves_settings(&curves, options, err);
    if (status != STATUS_OK)
        return status;
    size_t n = (size_t)count;
    struct talk talk = {PROGRAM, false};
    struct history *runs;
    status = history_read_all(&runs, operands, &n, talk_say, &talk, err);
    if (status != STATUS_OK)
        return status;
    status = write_curves(options, &curves, runs, n, err);
    history_free_all(runs, n);
    return status == STATUS_OK && n < (size_t)count ? STATUS_SKIPPED : status;
}

// What a report is made of, beside the run's metrics.
struct material {
    struct checkpoint checkpoint;
    struct review review;
    struct error no_checkpoint, no_review;
    const char *data;
};

// The test data as the command line has it, or as the run was tested; NULL: none.
static const char *test_data(const struct picture_options *options,
                             const struct checkpoint *checkpoint, struct source_options *source) {
    struct settings settings = {0};
    if (options->data) {
        *source = (struct source_options){.from = options->from, .labels = options->labels};
        return options->data;
    }
    settings_read(&settings, json_object_get(checkpoint->run, "settings"));
    *source = (struct source_options){
        .from = options->from ? options->from : settings.from,
        .labels = options->labels ? options->labels : settings.test_labels,
        .targets = settings.test_targets ? settings.test_targets : settings.targets,
    };
    return settings.test;
}

// What is missing is told in the page; what the user named must be there.
static int gather(struct material *m, const struct picture_options *options,
                  const struct history *history, struct error *err) {
    struct source_options source;
    if (checkpoint_load(&m->checkpoint, history->name, options->set.items, options->set.count,
                        false, &m->no_checkpoint)) {
        error_set(&m->no_review, m->no_checkpoint.status, "there is no checkpoint to predict with");
        if (options->data)
            *err = m->no_checkpoint;
        return options->data ? err->status : STATUS_OK;
    }
    m->data = test_data(options, &m->checkpoint, &source);
    if (!m->data) {
        error_set(&m->no_review, STATUS_NOINPUT, "the run had no test data; give some with --data");
        return STATUS_OK;
    }
    int status = review_run(&m->review, &m->checkpoint, m->data, &source, (int)options->readers,
                            &m->no_review);
    if (status != STATUS_OK && options->data)
        *err = m->no_review;
    return options->data ? status : STATUS_OK;
}

static int write_page(const struct picture_options *options, const struct history *history,
                      const struct material *m, struct error *err) {
    struct page page = {
        .title = options->title ? options->title : history->title,
        .history = history,
        .checkpoint = m->no_checkpoint.status ? NULL : &m->checkpoint,
        .no_checkpoint = m->no_checkpoint.text,
        .review = m->no_review.status ? NULL : &m->review,
        .no_review = m->no_review.text,
        .data = m->data,
    };
    struct textfile *file;
    int status = textfile_open(&file, options->output, err);
    if (status != STATUS_OK)
        return status;
    status = page_write(textfile_stream(file), &page, err);
    if (status == STATUS_OK)
        return textfile_close(file, err);
    textfile_abort(file);
    return status;
}

static int run_report(const struct subcommand *subcommand, char **operands, int count,
                      struct error *err) {
    const struct picture_options *options = subcommand->options;
    struct history history;
    struct material material = {0};
    (void)count;
    int status = history_read(&history, operands[0], err);
    if (status != STATUS_OK)
        return status;
    status = gather(&material, options, &history, err);
    if (status == STATUS_OK) {
        if (material.no_review.status)
            talk_note(PROGRAM, "no confusion and no pictures: %s", material.no_review.text);
        status = write_page(options, &history, &material, err);
    }
    review_free(&material.review);
    checkpoint_free(&material.checkpoint);
    history_free(&history);
    return status;
}

size_t picture_subcommands(struct subcommand *subcommands, struct picture_options *options) {
    const struct option_row plot_rows[] = {
        TEXT('o', "output", "FILE", &options->output, "-", "the drawing, SVG"),
        CHOICE('x', "x", "AXIS", &options->x, x_choices, "both", "what the x axis is"),
        LIST_OF(0, "range", "AXIS=LOW:HIGH", &options->range, curves_axis,
                "what a y axis covers: loss, accuracy, rate, staleness"),
    };
    const struct option_row report_rows[] = {
        TEXT('o', "output", "FILE", &options->output, "-", "the page, HTML"),
        TEXT(0, "title", "TEXT", &options->title, "the run's folder", "heading of the page"),
        TEXT('d', "data", "FILE", &options->data, "the run's test data", "labelled samples"),
        TEXT(0, "from", "KIND", &options->from, NULL, "the kind of --data"),
        TEXT(0, "labels", "FILE", &options->labels, NULL, "labels beside IDX or npy data"),
        LIST_OF(0, "set", "LAYER.KEY=VALUE", &options->set, model_key, "override a key of a layer"),
        INT('t', "threads", "N", &options->readers, 1, 1024, "all cores", "threads that predict"),
    };
    const struct command plot = {
        .name = PROGRAM " plot",
        .synopsis = "[-o FILE] [-x AXIS] [--range AXIS=LOW:HIGH] RUN ...",
        .about = "draw the learning curves of runs: loss, accuracy and learning rate",
        .rows = plot_rows,
        .row_count = sizeof plot_rows / sizeof *plot_rows,
        .operand = "DIR"};
    const struct command report = {
        .name = PROGRAM " report",
        .synopsis = "[-o FILE] [--title TEXT] [-d FILE] [options] RUN",
        .about = "write a run as one HTML page: curves, model, confusion, pictures",
        .rows = report_rows,
        .row_count = sizeof report_rows / sizeof *report_rows,
        .operand = "DIR"};
    subcommand_set(&subcommands[0], &plot, options, run_plot, 1, INT_MAX);
    subcommand_set(&subcommands[1], &report, options, run_report, 1, 1);
    return 2;
}
