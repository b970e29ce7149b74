#include "cli/table.h"

static const char *option_action(enum value_kind kind) {
    return kind == VALUE_FILE ? "_files" : kind == VALUE_DIR ? "_files -/" : " ";
}

// Calls the script's own function NAME_`helper` with the words. The blank before it keeps
// _arguments from adding words of its own.
static void put_helper_call(FILE *out, const struct program *program, const char *helper,
                            option_words *words) {
    fputs(" _", out);
    completion_function(out, program);
    fprintf(out, "_%s", helper);
    if (words) {
        putc(' ', out);
        completion_words(out, words, " ");
    }
}

static void put_helper_words(FILE *out, const struct program *program, const struct option_row *row,
                             enum value_kind kind) {
    fprintf(out, ":%s:", row->value);
    put_helper_call(out, program,
                    kind == VALUE_KEY         ? "keys"
                    : kind == VALUE_LAYER_KEY ? "layer_keys"
                                              : "operations",
                    row->words);
}

// '(-o --output)'{-o+,--output=}'[help]:FILE:_files' for _arguments.
static void put_option(FILE *out, const struct program *program, const struct option_row *row) {
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
    } else if (row->words) {
        put_helper_words(out, program, row, kind);
    } else if (kind != VALUE_NONE) {
        fprintf(out, ":%s:%s", row->value, option_action(kind));
    }
    putc('\'', out);
}

static void put_arguments(FILE *out, const struct program *program, const struct command *command) {
    const struct option_row *row;
    fputs("_arguments -s -S", out);
    for (size_t i = 0; (row = table_row(command, i)); i++)
        if (row->kind != OPTION_HEADING)
            put_option(out, program, row);
    if (command == program->command && program->command_count) {
        fputs(" \\\n        '1:command:", out);
        put_helper_call(out, program, "commands", NULL);
        putc('\'', out);
    }
    if (command->keys) {
        fprintf(out, " \\\n        '1:%s:%s' \\\n        '*:KEY=VALUE:", command->operand,
                option_action(table_operand(command)));
        put_helper_call(out, program, "keys", command->keys);
        fputs("'\n", out);
        return;
    }
    if (table_operand(command) != VALUE_NONE)
        fprintf(out, " \\\n        '*:%s:%s'", command->operand,
                option_action(table_operand(command)));
    putc('\n', out);
}

static void put_function_head(FILE *out, const struct program *program, const char *helper) {
    putc('_', out);
    completion_function(out, program);
    fprintf(out, "_%s() {\n", helper);
}

// The subcommands with what they do, beside the operands of a program that also has these.
static void put_commands(FILE *out, const struct program *program) {
    enum value_kind operand = table_operand(program->command);
    put_function_head(out, program, "commands");
    fputs("    local -a commands=(\n", out);
    for (size_t i = 0; i < program->command_count; i++) {
        fprintf(out, "        '%s:", table_subcommand(&program->commands[i]));
        completion_quoted(out, program->commands[i].about, ":\\");
        fputs("'\n", out);
    }
    fputs("    )\n    _describe -t commands command commands\n", out);
    if (operand != VALUE_NONE)
        fprintf(out, "    %s\n", option_action(operand));
    fputs("}\n", out);
}

static void put_zsh_helpers(FILE *out, const struct program *program) {
    if (program->command_count)
        put_commands(out, program);
    if (completion_needs(program, VALUE_KEY)) {
        put_function_head(out, program, "keys");
        fputs("    if compset -P 1 '*='; then _files; else compadd -S = -- \"$@\"; fi\n}\n", out);
    }
    if (completion_needs(program, VALUE_LAYER_KEY)) {
        put_function_head(out, program, "layer_keys");
        fputs("    local -a models=(${^${(M)words:#*.net}}(N.))\n"
              "    if compset -P 1 '*='; then return 1; fi\n"
              "    if compset -P 1 '*.'; then compadd -S = -- \"$@\"; return; fi\n"
              "    (( $#models )) || return 1\n"
              "    compadd -S . -- ${(f)\"$(" COMPLETION_LAYERS " $models 2>/dev/null)\"}\n}\n",
              out);
    }
    if (completion_needs(program, VALUE_CHAIN)) {
        put_function_head(out, program, "operations");
        fputs("    # A quote that begins inside a word (--ops='a; b) is one that zsh cannot go on "
              "with.\n"
              "    if [[ -n $IPREFIX && $PREFIX = *\\\\* ]]; then return 1; fi\n"
              "    compset -P '*;'\n    compset -P '[\\\\ ]#'\n    compadd -- \"$@\"\n}\n",
              out);
    }
}

void completion_zsh(FILE *out, const struct program *program) {
    const struct command *command = program->command;
    fprintf(out,
            "#compdef %s\n"
            "# zsh completion for %s, printed by %s --completion zsh\n",
            command->name, command->name, command->name);
    put_zsh_helpers(out, program);
    putc('_', out);
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
