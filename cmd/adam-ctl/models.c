// adam-ctl check, time: looks at models.
#include <stdio.h>

#include "adam-ctl/subcommand.h"
#include "core/error.h"
#include "core/invariant.h"
#include "kernels/kernels.h"
#include "measure/selftest.h"
#include "measure/timing.h"
#include "model/choice.h"
#include "model/cut_table.h"
#include "model/model.h"
#include "model/table.h"
#include "rule/protocol.h"
#include "run/model_ops.h"
#include "run/settings.h"
#include "train/home.h"

// --- copies of the weights ------------------------------------------------------------------

static const struct {
    const char *name, *protocol;
    bool own; // its threads may have copies of their own
} kinds[] = {
    {"async", "async", true}, {"hardsync", "hardsync", false}, {"softsync", "softsync:1", false}};
enum { KINDS = sizeof kinds / sizeof *kinds };

// A worker's, by a run's settings as they come; `own`: of threads that may have some.
static int copies_of(int kind, int own) {
    struct settings settings;
    struct protocol protocol;
    enum protocol_push push;
    settings_default(&settings);
    settings.protocol = kinds[kind].protocol;
    bool known = !settings_protocol(&settings, &protocol, &push, NULL);
    INVARIANT(known);
    return protocol_copies(&protocol, push, settings_overlap(&settings, &protocol)) +
           (kinds[kind].own ? own : 0);
}

// Those of asynchronous threads; a partition has one thread.
static int thread_copies(const struct model_options *options, const struct model *model) {
    return options->partitions > 0
               ? 0
               : home_copies_arrays(model, (int)options->threads, (int)options->batch);
}

// {"alone": of a process alone, "async": of a worker...}
static json_t *copies_json(const struct model_options *options, const struct model *model) {
    int own = thread_copies(options, model);
    json_t *copies = json_pack("{s:i}", "alone", 1 + own);
    for (int i = 0; copies && i < KINDS; i++)
        json_put(&copies, kinds[i].name, json_integer(copies_of(i, own)));
    return copies;
}

static void print_copies(const struct model_options *options, const struct model *model) {
    int own = thread_copies(options, model);
    printf("copies of the weights: %d in a process alone; of a run's worker", 1 + own);
    for (int i = 0; i < KINDS; i++)
        printf("%s %d with %s", i ? "," : "", copies_of(i, own), kinds[i].name);
    printf("\n");
}

// Takes over the reference.
static int show_json(json_t *table, const struct model_options *options, const struct model *model,
                     struct error *err) {
    if (table)
        json_put(&table, "copies", copies_json(options, model));
    return print_json(table, err);
}

static int show_text(char *table, const struct model_options *options, const struct model *model,
                     struct error *err) {
    int status = print_text(table, err);
    if (status == STATUS_OK)
        print_copies(options, model);
    return status;
}

// --- check ----------------------------------------------------------------------------------

static int show_cut(const struct model_options *options, const struct model *model,
                    struct error *err) {
    int batch = (int)options->batch;
    struct cut *cut;
    int status = cut_open(&cut, model, (int)options->partitions, batch, err);
    if (status == STATUS_OK)
        status = options->json ? show_json(cut_table_json(cut, model, batch), options, model, err)
                               : show_text(cut_table_text(cut, model, batch), options, model, err);
    cut_close(cut);
    return status;
}

static int show_model(const struct model_options *options, const struct model *model,
                      struct error *err) {
    int batch = (int)options->batch, threads = (int)options->threads;
    struct ops *ops; // they must exist
    int status = model_ops_open(&ops, model, err);
    if (status == STATUS_OK && options->partitions > 0)
        status = show_cut(options, model, err);
    else if (status == STATUS_OK)
        status = options->json ? show_json(table_json(model, batch, threads), options, model, err)
                               : show_text(table_text(model, batch, threads), options, model, err);
    ops_free(ops);
    return status;
}

// Either of them; with --json one object of both.
static int show_kernels(const struct model_options *options, const struct model *model,
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

static int run_check(const struct subcommand *subcommand, char **operands, int count,
                     struct error *err) {
    const struct model_options *options = subcommand->options;
    struct model *model = NULL;
    int status = STATUS_OK;
    if (count > 0)
        status = model_ops_read(&model, operands[0], options->set.items, options->set.count, err);
    else if (!options->kernels)
        status = error_set(err, STATUS_USAGE, "check: needs one FILE, or --kernels");
    if (status == STATUS_OK)
        status =
            options->kernels ? show_kernels(options, model, err) : show_model(options, model, err);
    model_free(model);
    return status;
}

static int run_time(const struct subcommand *subcommand, char **operands, int count,
                    struct error *err) {
    const struct model_options *options = subcommand->options;
    struct model *model;
    struct timing timing = {0};
    (void)count;
    int status = model_ops_read(&model, operands[0], options->set.items, options->set.count, err);
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

size_t model_subcommands(struct subcommand *subcommands, struct model_options *options) {
    const struct option_row check_rows[] = {
        LIST_OF(0, "set", "LAYER.KEY=VALUE", &options->set, model_key, "override a key of a layer"),
        INT('b', "batch", "N", &options->batch, 1, 1e6, "1", "samples in a mini-batch of a thread"),
        INT('t', "threads", "N", &options->threads, 1, 4096, "1", "threads that train"),
        INT(0, "partitions", "N", &options->partitions, 0, CUT_PARTITIONS_MAX, "0",
            "show how the model is cut over so many partitions"),
        FLAG(0, "kernels", &options->kernels, "test the kernels; show which ones a model gets"),
        FLAG(0, "json", &options->json, "print one JSON object"),
    };
    const struct option_row time_rows[] = {
        LIST_OF(0, "set", "LAYER.KEY=VALUE", &options->set, model_key, "override a key of a layer"),
        INT('b', "batch", "N", &options->batch, 1, 1e6, "1", "samples in a mini-batch"),
        REAL(0, "seconds", "S", &options->seconds, 0, 1e6, "1", "how long to measure"),
        FLAG(0, "predict", &options->predict, "time the forward pass alone, as adam-eval runs it"),
        FLAG(0, "json", &options->json, "print one JSON object"),
    };
    const struct command check = {
        .name = PROGRAM " check",
        .synopsis = "[--set LAYER.KEY=VALUE] [-b N] [-t N] [--partitions N] [--json] FILE\n"
                    "--kernels [--set LAYER.KEY=VALUE] [-b N] [--json] [FILE]",
        .about = "check a model file, and show shapes, parameters, connections and memory",
        .rows = check_rows,
        .row_count = sizeof check_rows / sizeof *check_rows,
        .operand = "FILE"};
    const struct command time = {
        .name = PROGRAM " time",
        .synopsis = "[-b N] [--seconds S] [--predict] [--json] [options] FILE",
        .about = "time a model layer by layer, on one thread and random samples",
        .rows = time_rows,
        .row_count = sizeof time_rows / sizeof *time_rows,
        .operand = "FILE"};
    subcommand_set(&subcommands[0], &check, options, run_check, 0, 1);
    subcommand_set(&subcommands[1], &time, options, run_time, 1, 1);
    return 2;
}
