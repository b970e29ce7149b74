// adam-ctl import: a model of others as a checkpoint.
#include "onnx/import.h"

#include <stdlib.h>

#include "adam-ctl/subcommand.h"
#include "cli/talk.h"
#include "core/error.h"

static int read_names(struct classes *classes, const struct import_options *options,
                      struct error *err) {
    return options->classes ? classes_read(classes, options->classes, err) : STATUS_OK;
}

// The folder is touched once the model is understood.
static int save(const struct checkpoint *checkpoint, const struct import_options *options,
                struct error *err) {
    int status = options->force ? STATUS_OK : run_folder_check(options->out, false, err);
    if (!status)
        status = run_folder_make(options->out, err);
    return status ? status : checkpoint_save(checkpoint, options->out, 0, err);
}

static void say_guess(const struct import_guess *guess) {
    if (guess->ops)
        talk_note(PROGRAM,
                  "the file does not say how pictures become its input; assumed: --ops '%s'",
                  guess->ops);
    if (guess->scores)
        talk_note(PROGRAM,
                  "the file does not say what makes scores of its output; assumed: --scores %s",
                  guess->scores);
}

static int import(const struct subcommand *subcommand, const char *path,
                  const struct classes *classes, struct error *err) {
    const struct import_options *options = subcommand->options;
    const struct import_wish wish = {.ops = options->ops,
                                     .shape = options->shape,
                                     .scores = options->scores,
                                     .classes = options->classes ? classes : NULL};
    struct checkpoint checkpoint;
    struct import_guess guess;
    int status = onnx_import(&checkpoint, path, &wish, &guess, err);
    checkpoint.command = subcommand->typed;
    if (!status)
        status = save(&checkpoint, options, err);
    if (!status)
        say_guess(&guess);
    free(guess.ops);
    checkpoint_free(&checkpoint);
    return status;
}

static int run_import(const struct subcommand *subcommand, char **operands, int count,
                      struct error *err) {
    const struct import_options *options = subcommand->options;
    struct classes classes = {.count = 0};
    (void)count;
    int status = options->out ? STATUS_OK : error_set(err, STATUS_USAGE, "import: needs --out DIR");
    if (!status)
        status = read_names(&classes, options, err);
    if (!status)
        status = import(subcommand, operands[0], &classes, err);
    classes_free(&classes);
    return status;
}

size_t import_subcommands(struct subcommand *subcommands, struct import_options *options) {
    static const char *const scores[] = {"softmax", "logistic", "linear", NULL};
    const struct option_row rows[] = {
        TEXT('o', "out", "DIR", &options->out, NULL, "folder for the checkpoint"),
        FLAG('f', "force", &options->force, "replace a run in that folder"),
        TEXT(0, "ops", "CHAIN", &options->ops, NULL,
             "operations that make of a picture what the graph takes"),
        TEXT(0, "shape", "CxHxW", &options->shape, NULL,
             "of what it takes, where the file leaves that open"),
        TEXT(0, "classes", "FILE", &options->classes, "0, 1, 2...", "names of the classes"),
        CHOICE(0, "scores", "KIND", &options->scores, scores, NULL,
               "what makes scores of the output"),
    };
    const struct command import = {.name = PROGRAM " import",
                                   .synopsis = "-o DIR [-f] [options] FILE.onnx",
                                   .about = "read a model of others from an ONNX file",
                                   .rows = rows,
                                   .row_count = sizeof rows / sizeof *rows,
                                   .operand = "FILE.onnx"};
    subcommand_set(&subcommands[0], &import, options, run_import, 1, 1);
    return 1;
}
