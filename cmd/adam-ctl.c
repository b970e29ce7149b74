// adam-ctl: looks at models and runs, and directs those of many processes. Its subcommands
// are in cmd/adam-ctl/.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adam-ctl/subcommand.h"
#include "cli/talk.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/words.h"

enum { SUBCOMMANDS = 32 };

struct options {
    struct model_options model;
    struct export_options export;
    struct import_options import;
    struct picture_options picture;
    struct compare_options compare;
    struct controller_options controller;
    struct admin_options admin;
    struct launch_options launch;
    struct key_options key;
    struct store_options store;
};

static size_t all_subcommands(struct subcommand *subcommands, struct options *options) {
    size_t count = model_subcommands(subcommands, &options->model);
    count += export_subcommands(subcommands + count, &options->export);
    count += import_subcommands(subcommands + count, &options->import);
    count += picture_subcommands(subcommands + count, &options->picture);
    count += compare_subcommands(subcommands + count, &options->compare);
    count += controller_subcommands(subcommands + count, &options->controller);
    count += admin_subcommands(subcommands + count, &options->admin);
    count += drain_subcommands(subcommands + count, &options->admin);
    count += gather_subcommands(subcommands + count, &options->admin);
    count += launch_subcommands(subcommands + count, &options->launch);
    count += doctor_subcommands(subcommands + count, &options->launch);
    count += key_subcommands(subcommands + count, &options->key);
    count += store_subcommands(subcommands + count, &options->store);
    return count;
}

// "adam-ctl -n up" is "adam-ctl up -n".
static void move_dry_run(int argc, char **argv) {
    if (argc > 2 && (!strcmp(argv[1], "-n") || !strcmp(argv[1], "--dry-run"))) {
        char *option = argv[1];
        argv[1] = argv[2];
        argv[2] = option;
    }
}

// Another number of operands than it takes: its usage, of which the first line is enough.
static int wrong_count(const struct command *command, struct error *err) {
    return error_set(err, STATUS_USAGE, "%s: missing or too many operands; usage: %s %.*s",
                     strchr(command->name, ' ') + 1, command->name,
                     (int)strcspn(command->synopsis, "\n"), command->synopsis);
}

// `typed` is the command line before the parser reorders it.
static int run(int argc, char **argv, const char *typed, struct options *options,
               struct error *err) {
    struct subcommand subcommands[SUBCOMMANDS];
    struct command commands[SUBCOMMANDS];
    size_t count = all_subcommands(subcommands, options);
    for (size_t i = 0; i < count; i++)
        commands[i] = subcommands[i].command;
    const struct command program = {.name = PROGRAM,
                                    .synopsis = "SUBCOMMAND ...",
                                    .about = "look at models and runs, and direct runs"};
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
    struct subcommand *subcommand = &subcommands[chosen - commands];
    subcommand->typed = typed;
    if (argc - operand < subcommand->least || argc - operand > subcommand->most)
        return wrong_count(chosen, err);
    return subcommand->run(subcommand, argv + operand, argc - operand, err);
}

int main(int argc, char **argv) {
    struct options options = {
        .model = {.batch = 1, .threads = 1, .seconds = 1},
        .picture = {.readers = cpu_count(), .output = "-", .x = "both"},
        .admin = {.every = 2},
        .launch = {.warning = 120, .host = "$(hostname)"},
        .key = {.days = 365},
    };
    struct error err = {0};
    talk_begin(_exit);
    network_default(&options.controller.network);
    network_default(&options.admin.network);
    char *typed = words_command(PROGRAM, argc, argv);
    move_dry_run(argc, argv);
    int status = typed ? run(argc, argv, typed, &options, &err) : error_nomem(&err);
    free(typed);
    free(options.model.set.items);
    free(options.export.set.items);
    free(options.picture.set.items);
    free(options.picture.range.items);
    free(options.controller.set.items);
    free(options.launch.set.items);
    return talk_end(PROGRAM, status, &err, options.controller.quiet);
}
