#include "cli/table.h"

// How the helper function of the script is asked for a kind of value.
static void put_offer(FILE *out, enum value_kind kind) {
    if (kind == VALUE_FILE)
        fputs(" offer -f", out);
    else if (kind == VALUE_DIR)
        fputs(" offer -d", out);
}

// One branch for each option with a value: "stat:--format | stat:-f) ... ;;"
static void put_values(FILE *out, const struct command *command) {
    const struct option_row *row;
    const char *sub = table_subcommand(command);
    for (size_t i = 0; (row = table_row(command, i)); i++) {
        enum value_kind kind = table_value(row);
        if (kind == VALUE_NONE)
            continue;
        fprintf(out, "    %s:--%s", sub, row->name);
        if (row->letter)
            fprintf(out, " | %s:-%c", sub, row->letter);
        putc(')', out);
        if (kind == VALUE_CHOICE) {
            fputs(" offer -W '", out);
            completion_choices(out, row);
            putc('\'', out);
        }
        put_offer(out, kind);
        fputs(kind == VALUE_FREE ? " return ;;\n" : "; return ;;\n", out);
    }
}

static void put_option_names(FILE *out, const struct command *command) {
    const struct option_row *row;
    const char *between = "";
    fprintf(out, "    %s:-*) offer -W '", table_subcommand(command));
    for (size_t i = 0; (row = table_row(command, i)); i++) {
        if (row->kind == OPTION_HEADING)
            continue;
        fprintf(out, "%s--%s", between, row->name);
        if (row->letter)
            fprintf(out, " -%c", row->letter);
        between = " ";
    }
    fputs("' ;;\n", out);
}

static void put_operands(FILE *out, const struct program *program, const struct command *command) {
    fprintf(out, "    %s:*)", table_subcommand(command));
    if (command == program->command && program->command_count) {
        fputs(" if [ \"$COMP_CWORD\" = 1 ]; then offer -W '", out);
        completion_subcommands(out, program, " ");
        fputs("'; fi;", out);
    }
    put_offer(out, table_operand(command));
    fputs(" ;;\n", out);
}

void completion_bash(FILE *out, const struct program *program) {
    const struct command *command = program->command;
    fprintf(out, "# bash completion for %s, printed by %s --completion bash\n_", command->name,
            command->name);
    completion_function(out, program);
    fputs("() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} "
          "command=\n"
          "    offer() {\n"
          "        local line\n"
          "        while IFS= read -r line; do COMPREPLY+=(\"$line\"); done < <(compgen \"$@\" -- "
          "\"$current\")\n"
          "    }\n"
          "    # bash makes three words of --name=value.\n"
          "    if [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
          "    if [ \"$current\" = = ]; then current=; fi\n",
          out);
    if (program->command_count) {
        fputs("    case ${COMP_WORDS[1]} in\n    ", out);
        completion_subcommands(out, program, " | ");
        fputs(") if [ \"$COMP_CWORD\" -gt 1 ]; then command=${COMP_WORDS[1]}; fi ;;\n    esac\n",
              out);
    }
    fputs("    COMPREPLY=()\n    case $command:$before in\n", out);
    put_values(out, command);
    for (size_t i = 0; i < program->command_count; i++)
        put_values(out, &program->commands[i]);
    fputs("    esac\n    case $command:$current in\n", out);
    put_option_names(out, command);
    put_operands(out, program, command);
    for (size_t i = 0; i < program->command_count; i++) {
        put_option_names(out, &program->commands[i]);
        put_operands(out, program, &program->commands[i]);
    }
    fputs("    esac\n}\ncomplete -o filenames -F _", out);
    completion_function(out, program);
    fprintf(out, " %s\n", command->name);
}
