// adam-ctl: looks at models and runs, and directs those of many processes. Its subcommands
// are in cmd/adam-ctl/.
#include <stdlib.h>
#include <string.h>

#include "adam-ctl/subcommand.h"
#include "cli/talk.h"
#include "core/cpu.h"

enum { SUBCOMMANDS = 32 };

struct options {
    struct model_options model;
    struct picture_options picture;
    struct controller_options controller;
    struct admin_options admin;
    struct launch_options launch;
    struct key_options key;
};

static size_t all_subcommands(struct subcommand *subcommands, struct options *options) {
    size_t count = model_subcommands(subcommands, &options->model);
    count += picture_subcommands(subcommands + count, &options->picture);
    count += controller_subcommands(subcommands + count, &options->controller);
    count += admin_subcommands(subcommands + count, &options->admin);
    count += launch_subcommands(subcommands + count, &options->launch);
    count += key_subcommands(subcommands + count, &options->key);
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

static int run(int argc, char **argv, struct options *options, struct error *err) {
    struct subcommand subcommands[SUBCOMMANDS];
    struct command commands[SUBCOMMANDS];
    size_t count = all_subcommands(subcommands, options);
    for (size_t i = 0; i < count; i++)
        commands[i] = subcommands[i].command;
    const struct command program = {
        .name = PROGRAM,
        .synopsis = "SUBCOMMAND ...",
        .about = "look at models and runs, and direct runs of many processes"};
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
    subcommand->argc = argc;
    subcommand->argv = argv;
    if (argc - operand < subcommand->least || argc - operand > subcommand->most)
        return error_set(err, STATUS_USAGE, "%s: needs one %s; try '%s --help'", chosen->name,
                         chosen->operand, chosen->name);
    return subcommand->run(subcommand, argv + operand, argc - operand, err);
}

int main(int argc, char **argv) {
    struct options options = {
        .model = {.batch = 1, .threads = 1, .seconds = 1},
        .picture = {.readers = cpu_count(), .output = "-", .x = "both"},
        .admin = {.every = 2},
        .launch = {.serve = 1, .ps = 1, .warning = 120, .host = "$(hostname)"},
        .key = {.days = 365},
    };
    struct error err = {0};
    talk_begin();
    network_default(&options.controller.network);
    network_default(&options.admin.network);
    move_dry_run(argc, argv);
    int status = run(argc, argv, &options, &err);
    free(options.model.set.items);
    free(options.picture.set.items);
    free(options.controller.set.items);
    free(options.launch.set.items);
    return talk_end(PROGRAM, status, &err, options.controller.quiet);
}
