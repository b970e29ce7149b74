#include "cli/table.h"

static const char *action(enum value_kind kind) {
    return kind == VALUE_FILE ? "_files" : kind == VALUE_DIR ? "_files -/" : " ";
}

// '(-o --output)'{-o+,--output=}'[help]:FILE:_files' for _arguments.
static void put_option(FILE *out, const struct option_row *row) {
    enum value_kind kind = table_value(row);
    const char *close = kind == VALUE_NONE ? "" : "=";
    fputs(" \\\n        ", out);
    if (row->kind == OPTION_LIST)
        fputs("'*'", out);
    else if (row->letter)
        fprintf(out, "'(-%c --%s)'", row->letter, row->name);
    if (row->letter)
        fprintf(out, "{-%c%s,--%s%s}'[", row->letter, *close ? "+" : "", row->name, close);
    else
        fprintf(out, "'--%s%s[", row->name, close);
    completion_quoted(out, row->help, "[]\\");
    putc(']', out);
    if (kind == VALUE_CHOICE) {
        fprintf(out, ":%s:(", row->value);
        completion_choices(out, row);
        putc(')', out);
    } else if (kind != VALUE_NONE) {
        fprintf(out, ":%s:%s", row->value, action(kind));
    }
    putc('\'', out);
}

static void put_arguments(FILE *out, const struct program *program, const struct command *command) {
    const struct option_row *row;
    fputs("_arguments -s -S", out);
    for (size_t i = 0; (row = table_row(command, i)); i++)
        if (row->kind != OPTION_HEADING)
            put_option(out, row);
    if (command == program->command && program->command_count) {
        fputs(" \\\n        '1: :_alternative \"commands:command:(", out);
        completion_subcommands(out, program, " ");
        fputs(")\"", out);
        if (table_operand(command) != VALUE_NONE)
            fprintf(out, " \"operands:%s:%s\"", command->operand, action(table_operand(command)));
        putc('\'', out);
    }
    if (table_operand(command) != VALUE_NONE)
        fprintf(out, " \\\n        '*:%s:%s'", command->operand, action(table_operand(command)));
    putc('\n', out);
}

void completion_zsh(FILE *out, const struct program *program) {
    const struct command *command = program->command;
    fprintf(out,
            "#compdef %s\n"
            "# zsh completion for %s, printed by %s --completion zsh\n_",
            command->name, command->name, command->name);
    completion_function(out, program);
    fputs("() {\n", out);
    if (program->command_count)
        fputs("    case $(( CURRENT > 2 )):$words[2] in\n", out);
    for (size_t i = 0; i < program->command_count; i++) {
        fprintf(out, "    1:%s)\n        shift words\n        (( CURRENT-- ))\n        ",
                table_subcommand(&program->commands[i]));
        put_arguments(out, program, &program->commands[i]);
        fputs("        return ;;\n", out);
    }
    if (program->command_count)
        fputs("    esac\n", out);
    fputs("    ", out);
    put_arguments(out, program, command);
    fputs("}\n# Found in $fpath it is the function itself; sourced, it is made known.\n"
          "if [[ $funcstack[1] = _",
          out);
    fprintf(out, "%s ]]; then\n    _", command->name);
    completion_function(out, program);
    fputs(" \"$@\"\nelse\n    compdef _", out);
    completion_function(out, program);
    fprintf(out, " %s\nfi\n", command->name);
}
