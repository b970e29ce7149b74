#include "cli/table.h"

// Where the lines of a command apply: " -n '...'", nothing in a program alone.
static void put_condition(FILE *out, const struct program *program, const struct command *command) {
    if (!program->command_count)
        return;
    fprintf(out, " -n '%s__fish_seen_subcommand_from ", command == program->command ? "not " : "");
    if (command == program->command)
        completion_subcommands(out, program, " ");
    else
        fputs(table_subcommand(command), out);
    putc('\'', out);
}

static void put_value(FILE *out, const struct option_row *row) {
    switch (table_value(row)) {
    case VALUE_CHOICE:
        fputs(" -x -a '", out);
        completion_choices(out, row);
        putc('\'', out);
        break;
    case VALUE_FILE:
        fputs(" -r -F", out);
        break;
    case VALUE_DIR:
        fputs(" -x -a '(__fish_complete_directories)'", out);
        break;
    case VALUE_FREE:
        fputs(" -x", out);
        break;
    case VALUE_NONE:
        break;
    }
}

static void put_command(FILE *out, const struct program *program, const struct command *command) {
    const struct option_row *row;
    const char *name = program->command->name;
    for (size_t i = 0; (row = table_row(command, i)); i++) {
        if (row->kind == OPTION_HEADING)
            continue;
        fprintf(out, "complete -c %s", name);
        put_condition(out, program, command);
        if (row->letter)
            fprintf(out, " -s %c", row->letter);
        fprintf(out, " -l %s", row->name);
        put_value(out, row);
        fputs(" -d '", out);
        completion_quoted(out, row->help, "\\");
        fputs("'\n", out);
    }
    if (table_operand(command) == VALUE_NONE)
        return;
    fprintf(out, "complete -c %s", name);
    put_condition(out, program, command);
    fputs(table_operand(command) == VALUE_DIR ? " -a '(__fish_complete_directories)'\n" : " -F\n",
          out);
}

void completion_fish(FILE *out, const struct program *program) {
    const char *name = program->command->name;
    fprintf(out, "# fish completion for %s, printed by %s --completion fish\n", name, name);
    fprintf(out, "complete -c %s -f\n", name);
    for (size_t i = 0; i < program->command_count; i++) {
        fprintf(out, "complete -c %s -n __fish_use_subcommand -a %s -d '", name,
                table_subcommand(&program->commands[i]));
        completion_quoted(out, program->commands[i].about, "\\");
        fputs("'\n", out);
    }
    put_command(out, program, program->command);
    for (size_t i = 0; i < program->command_count; i++)
        put_command(out, program, &program->commands[i]);
}
