// adam-ctl: looks at models and runs. One function a subcommand.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/option.h"
#include "cli/talk.h"
#include "core/cpu.h"
#include "core/json.h"
#include "core/mem.h"
#include "measure/selftest.h"
#include "measure/timing.h"
#include "model/choice.h"
#include "model/model.h"
#include "model/table.h"
#include "report/curves.h"
#include "report/page.h"
#include "store/textfile.h"
#include "train/model_ops.h"
#include "train/settings.h"

#define PROGRAM "adam-ctl"

struct options {
    struct option_list set;
    int64_t batch, threads, readers;
    const char *output, *x, *data, *labels, *from;
    double seconds;
    bool json, predict, kernels;
};

static const char *const x_choices[] = {"both", "epoch", "time", NULL};

// A subcommand, with its operands: one, unless its synopsis says more. Returns a
// status.
typedef int run_function(const struct options *options, char **operands, int count,
                         struct error *err);

static int print_text(char *text, struct error *err) {
    if (!text)
        return error_nomem(err);
    fputs(text, stdout);
    free(text);
    return STATUS_OK;
}

static int print_json(json_t *value, struct error *err) {
    if (!value)
        return error_nomem(err);
    char *line = json_line(value);
    json_decref(value);
    int status = print_text(line, err);
    if (status == STATUS_OK)
        putchar('\n');
    return status;
}

static int show_model(const struct options *options, const struct model *model, struct error *err) {
    int batch = (int)options->batch, threads = (int)options->threads;
    struct ops *ops; // they must exist
    int status = model_ops_open(&ops, model, err);
    if (status == STATUS_OK)
        status = options->json ? print_json(table_json(model, batch, threads), err)
                               : print_text(table_text(model, batch, threads), err);
    ops_free(ops);
    return status;
}

// Either of them; with --json one object of both.
static int show_kernels(const struct options *options, const struct model *model,
                        struct error *err) {
    const struct kernels *kernels = kernels_best();
    int batch = (int)options->batch;
    const struct kernels *families[SELFTEST_FAMILIES];
    struct selftest test;
    int status = selftest_run(&test, families, selftest_families(families), err);
    if (status != STATUS_OK)
        return status;
    if (options->json)
        status = print_json(json_pack("{s:s, s:o, s:o*}", "kernels", kernels->name, "selftest",
                                      selftest_json(&test), "choice",
                                      model ? choice_json(model, kernels, batch) : NULL),
                            err);
    else {
        printf("kernels: %s\n", kernels->name);
        status = model ? print_text(choice_text(model, kernels, batch), err) : STATUS_OK;
        if (status == STATUS_OK)
            status = print_text(selftest_text(&test), err);
    }
    if (status == STATUS_OK && !test.good)
        status = error_set(err, STATUS_SKIPPED, "the kernels of this machine are wrong");
    return status;
}

static int run_check(const struct options *options, char **operands, int count, struct error *err) {
    struct model *model = NULL;
    int status = STATUS_OK;
    if (count > 0)
        status = model_read(&model, operands[0], options->set.items, options->set.count, err);
    else if (!options->kernels)
        status = error_set(err, STATUS_USAGE, PROGRAM " check: needs one FILE, or --kernels");
    if (status == STATUS_OK)
        status =
            options->kernels ? show_kernels(options, model, err) : show_model(options, model, err);
    model_free(model);
    return status;
}

static int run_time(const struct options *options, char **operands, int count, struct error *err) {
    struct model *model;
    struct timing timing = {0};
    (void)count;
    int status = model_read(&model, operands[0], options->set.items, options->set.count, err);
    if (status != STATUS_OK)
        return status;
    status = timing_run(&timing, model, kernels_best(), (int)options->batch,
                        options->predict ? NET_PREDICT : NET_TRAIN, options->seconds, err);
    if (status == STATUS_OK)
        status = options->json ? print_json(timing_json(&timing), err)
                               : print_text(timing_text(&timing), err);
    timing_free(&timing);
    model_free(model);
    return status;
}

static void close_runs(struct history *runs, int count) {
    for (int i = 0; i < count; i++)
        history_free(&runs[i]);
    free(runs);
}

static enum curves_x x_axis(const char *text) {
    if (!strcmp(text, "epoch"))
        return CURVES_EPOCH;
    return strcmp(text, "time") ? CURVES_BOTH : CURVES_TIME;
}

static int write_curves(const struct options *options, const struct history *runs, int count,
                        struct error *err) {
    struct textfile *file;
    int status = textfile_open(&file, options->output, err);
    if (status != STATUS_OK)
        return status;
    status = curves_write(textfile_stream(file), runs, (size_t)count, x_axis(options->x), err);
    if (status == STATUS_OK)
        return textfile_close(file, err);
    textfile_abort(file);
    return status;
}

static int run_plot(const struct options *options, char **operands, int count, struct error *err) {
    struct history *runs = mem_zeroed((size_t)count, sizeof *runs);
    if (!runs)
        return error_nomem(err);
    int status = STATUS_OK;
    for (int i = 0; i < count && status == STATUS_OK; i++)
        status = history_read(&runs[i], operands[i], err);
    if (status == STATUS_OK)
        status = write_curves(options, runs, count, err);
    close_runs(runs, count);
    return status;
}

// What a report is made of, beside the run's metrics.
struct material {
    struct checkpoint checkpoint;
    struct review review;
    struct error no_checkpoint, no_review;
    const char *data;
};

// The test data as the command line has it, or as the run was tested; NULL: none.
static const char *test_data(const struct options *options, const struct checkpoint *checkpoint,
                             struct source_options *source) {
    struct settings settings = {0};
    if (options->data) {
        *source = (struct source_options){.from = options->from, .labels = options->labels};
        return options->data;
    }
    settings_read(&settings, json_object_get(checkpoint->run, "settings"));
    *source = (struct source_options){
        .from = options->from ? options->from : settings.from,
        .labels = options->labels ? options->labels : settings.test_labels,
    };
    return settings.test;
}

// What is missing is told in the page; what the user named must be there.
static int gather(struct material *m, const struct options *options, const struct history *history,
                  struct error *err) {
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

static int write_page(const struct options *options, const struct history *history,
                      const struct material *m, struct error *err) {
    struct page page = {
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

static int run_report(const struct options *options, char **operands, int count,
                      struct error *err) {
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

static int run(int argc, char **argv, struct options *options, struct error *err) {
    const struct option_row check_rows[] = {
        LIST(0, "set", "LAYER.KEY=VALUE", &options->set, "override a key of a layer"),
        INT('b', "batch", "N", &options->batch, 1, 1e6, "1", "samples in a mini-batch of a thread"),
        INT('t', "threads", "N", &options->threads, 1, 4096, "1", "threads that train"),
        FLAG(0, "kernels", &options->kernels, "test the kernels; show which ones a model gets"),
        FLAG(0, "json", &options->json, "print one JSON object"),
    };
    const struct option_row time_rows[] = {
        LIST(0, "set", "LAYER.KEY=VALUE", &options->set, "override a key of a layer"),
        INT('b', "batch", "N", &options->batch, 1, 1e6, "1", "samples in a mini-batch"),
        REAL('s', "seconds", "S", &options->seconds, 0, 1e6, "1", "how long to repeat it"),
        FLAG(0, "predict", &options->predict, "only the forward pass, as adam-eval does it"),
        FLAG(0, "json", &options->json, "print one JSON object"),
    };
    const struct option_row plot_rows[] = {
        TEXT('o', "output", "FILE", &options->output, "-", "the drawing, SVG"),
        CHOICE('x', "x", "AXIS", &options->x, x_choices, "both", "what the x axis is"),
    };
    const struct option_row report_rows[] = {
        TEXT('o', "output", "FILE", &options->output, "-", "the page, HTML"),
        TEXT('d', "data", "FILE", &options->data, "the run's test data", "labelled samples"),
        TEXT(0, "from", "KIND", &options->from, NULL, "the kind of --data"),
        TEXT(0, "labels", "FILE", &options->labels, NULL, "labels beside IDX or npy data"),
        LIST(0, "set", "LAYER.KEY=VALUE", &options->set, "override a key of a layer"),
        INT('t', "threads", "N", &options->readers, 1, 1024, "all cores", "threads that predict"),
    };
    const struct command commands[] = {
        {.name = PROGRAM " check",
         .synopsis = "[--set LAYER.KEY=VALUE] [-b N] [-t N] [--json] FILE\n"
                     "--kernels [--set LAYER.KEY=VALUE] [-b N] [--json] [FILE]",
         .about = "check a model file, and show shapes, parameters, connections and memory",
         .rows = check_rows,
         .row_count = sizeof check_rows / sizeof *check_rows,
         .operand = "FILE"},
        {.name = PROGRAM " time",
         .synopsis = "[--set LAYER.KEY=VALUE] [-b N] [-s S] [--predict] [--json] FILE",
         .about = "time a model layer by layer, on one thread and random samples",
         .rows = time_rows,
         .row_count = sizeof time_rows / sizeof *time_rows,
         .operand = "FILE"},
        {.name = PROGRAM " plot",
         .synopsis = "[-o FILE] [-x AXIS] RUN ...",
         .about = "draw the learning curves of runs: loss, accuracy and learning rate",
         .rows = plot_rows,
         .row_count = sizeof plot_rows / sizeof *plot_rows,
         .operand = "DIR"},
        {.name = PROGRAM " report",
         .synopsis = "[-o FILE] [-d FILE] [--from KIND] [--labels FILE] [-t N] RUN",
         .about = "write a run as one HTML page: curves, model, confusion, pictures",
         .rows = report_rows,
         .row_count = sizeof report_rows / sizeof *report_rows,
         .operand = "DIR"},
    };
    static const struct {
        run_function *run;
        int least, most; // operands
    } runs[] = {{run_check, 0, 1}, {run_time, 1, 1}, {run_plot, 1, INT_MAX}, {run_report, 1, 1}};
    const struct command program = {
        .name = PROGRAM, .synopsis = "SUBCOMMAND ...", .about = "look at models and runs"};
    size_t count = sizeof commands / sizeof *commands;
    const struct command *chosen;
    int operand;
    switch (cli_parse_program(&program, commands, count, argc, argv, &chosen, &operand, err)) {
    case CLI_DONE:
        return STATUS_OK;
    case CLI_FAIL:
        return STATUS_USAGE;
    case CLI_RUN:
        break;
    }
    size_t which = (size_t)(chosen - commands);
    if (argc - operand < runs[which].least || argc - operand > runs[which].most)
        return error_set(err, STATUS_USAGE, "%s: needs one %s; try '%s --help'", chosen->name,
                         chosen->operand, chosen->name);
    return runs[which].run(options, argv + operand, argc - operand, err);
}

int main(int argc, char **argv) {
    struct options options = {
        .batch = 1, .threads = 1, .seconds = 1, .readers = cpu_count(), .output = "-", .x = "both"};
    struct error err = {0};
    int status = run(argc, argv, &options, &err);
    if (status != STATUS_OK)
        talk_error(PROGRAM, &err);
    free(options.set.items);
    return talk_finish(PROGRAM, status);
}
