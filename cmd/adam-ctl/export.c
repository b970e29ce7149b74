// adam-ctl export: a trained model for the programs of others.
#include "onnx/export.h"
#include "adam-ctl/subcommand.h"
#include "core/error.h"
#include "model/model.h"

static int run_export(const struct subcommand *subcommand, char **operands, int count,
                      struct error *err) {
    const struct export_options *options = subcommand->options;
    struct checkpoint checkpoint = {0};
    (void)count;
    int status = STATUS_OK;
    if (!options->output)
        status = error_set(err, STATUS_USAGE, "export: needs --output FILE");
    if (!status)
        status = checkpoint_load(&checkpoint, operands[0], options->set.items, options->set.count,
                                 false, err);
    if (!status)
        status = onnx_export(&checkpoint, options->output, options->force, err);
    checkpoint_free(&checkpoint);
    return status;
}

size_t export_subcommands(struct subcommand *subcommands, struct export_options *options) {
    const struct option_row rows[] = {
        TEXT('o', "output", "FILE", &options->output, NULL, "where to"),
        FLAG('f', "force", &options->force, "replace the file"),
        LIST_OF(0, "set", "LAYER.KEY=VALUE", &options->set, model_key, "override a key of a layer"),
    };
    const struct command export = {.name = PROGRAM " export",
                                   .synopsis = "-o FILE [-f] [--set LAYER.KEY=VALUE] MODEL",
                                   .about = "write a trained model as an ONNX file",
                                   .rows = rows,
                                   .row_count = sizeof rows / sizeof *rows,
                                   .operand = "MODEL"};
    subcommand_set(&subcommands[0], &export, options, run_export, 1, 1);
    return 1;
}
