// adam-ctl: looks at models and runs. One function a subcommand.
#include <stdio.h>
#include <stdlib.h>

#include "cli/option.h"
#include "cli/talk.h"
#include "core/json.h"
#include "data/ops.h"
#include "model/model.h"
#include "model/table.h"

#define PROGRAM "adam-ctl"

struct options {
    struct option_list set;
    int64_t batch, threads;
    bool json;
};

// A subcommand: `operand` is its one operand. Returns a status.
typedef int run_function(const struct options *options, const char *operand, struct error *err);

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

// The operations on pictures that the model asks for must exist.
static int check_ops(const struct model *model, struct error *err) {
    const struct layer *input = model_input(model);
    struct ops *ops = NULL;
    size_t offset, length;
    int status = ops_parse(&ops, input->ops, OPS_DETERMINISTIC, &offset, &length, err);
    ops_free(ops);
    return status == STATUS_USAGE ? model_blame(model, input, "ops", offset, length, err) : status;
}

static int run_check(const struct options *options, const char *path, struct error *err) {
    struct model *model;
    int status = model_read(&model, path, options->set.items, options->set.count, err);
    if (status != STATUS_OK)
        return status;
    int batch = (int)options->batch, threads = (int)options->threads;
    status = check_ops(model, err);
    if (status == STATUS_OK)
        status = options->json ? print_json(table_json(model, batch, threads), err)
                               : print_text(table_text(model, batch, threads), err);
    model_free(model);
    return status;
}

static int run(int argc, char **argv, struct options *options, struct error *err) {
    const struct option_row check_rows[] = {
        LIST(0, "set", "LAYER.KEY=VALUE", &options->set, "override a key of a layer"),
        INT('b', "batch", "N", &options->batch, 1, 1e6, "1", "samples in a mini-batch of a thread"),
        INT('t', "threads", "N", &options->threads, 1, 4096, "1", "threads that train"),
        FLAG(0, "json", &options->json, "print one JSON object"),
    };
    const struct command commands[] = {
        {.name = PROGRAM " check",
         .synopsis = "[--set LAYER.KEY=VALUE] [-b N] [-t N] [--json] FILE",
         .about = "check a model file, and show shapes, parameters, connections and memory",
         .rows = check_rows,
         .row_count = sizeof check_rows / sizeof *check_rows,
         .operand = "FILE"},
    };
    run_function *const runs[] = {run_check};
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
    if (operand != argc - 1)
        return error_set(err, STATUS_USAGE, "%s: needs one %s; try '%s --help'", chosen->name,
                         chosen->operand, chosen->name);
    return runs[chosen - commands](options, argv[operand], err);
}

int main(int argc, char **argv) {
    struct options options = {.batch = 1, .threads = 1};
    struct error err = {0};
    int status = run(argc, argv, &options, &err);
    if (status != STATUS_OK)
        talk_error(PROGRAM, &err);
    free(options.set.items);
    return talk_finish(PROGRAM, status);
}
