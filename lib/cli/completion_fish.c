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

// " -x -a '(__adam_ctl_HELPER WORDS)'"; a word that ends in '=' or '.' gets no blank.
static void put_helper_call(FILE *out, const struct program *program, const char *helper,
                            option_words *words) {
    fputs(" -x -a '(__", out);
    completion_function(out, program);
    fprintf(out, "_%s ", helper);
    completion_words(out, words, " ");
    fputs(")'", out);
}

static void put_value_completion(FILE *out, const struct program *program,
                                 const struct option_row *row) {
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
    case VALUE_KEY:
        put_helper_call(out, program, "keys", row->words);
        break;
    case VALUE_LAYER_KEY:
        put_helper_call(out, program, "layer_keys", row->words);
        break;
    case VALUE_CHAIN:
        put_helper_call(out, program, "operations", row->words);
        break;
    case VALUE_FREE:
        fputs(" -x", out);
        break;
    case VALUE_NONE:
        break;
    }
}

static void put_command_completion(FILE *out, const struct program *program,
                                   const struct command *command) {
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
        put_value_completion(out, program, row);
        fputs(" -d '", out);
        completion_quoted(out, row->help, "\\");
        fputs("'\n", out);
    }
    if (command->keys) {
        fprintf(out, "complete -c %s", name);
        put_condition(out, program, command);
        put_helper_call(out, program, "keys", command->keys);
        putc('\n', out);
    }
    if (table_operand(command) == VALUE_NONE)
        return;
    fprintf(out, "complete -c %s", name);
    put_condition(out, program, command);
    fputs(table_operand(command) == VALUE_DIR ? " -a '(__fish_complete_directories)'\n" : " -F\n",
          out);
}

static void put_function_head(FILE *out, const struct program *program, const char *helper) {
    fputs("function __", out);
    completion_function(out, program);
    fprintf(out, "_%s\n", helper);
}

static void put_fish_helpers(FILE *out, const struct program *program) {
    bool keys = completion_needs(program, VALUE_KEY);
    bool layers = completion_needs(program, VALUE_LAYER_KEY);
    bool chain = completion_needs(program, VALUE_CHAIN);
    if (keys) {
        put_function_head(out, program, "keys");
        fputs("    printf '%s=\\n' $argv\nend\n", out);
    }
    if (layers || chain) {
        put_function_head(out, program, "value");
        fputs("    commandline -ct | string replace -r '^--[a-z-]+=' '' | "
              "string replace -r '^[\"\\']' ''\nend\n",
              out);
    }
    if (layers) {
        put_function_head(out, program, "layer_keys");
        fputs("    set -l layer (__", out);
        completion_function(out, program);
        fputs("_value | string match -r '^[^.=]*\\.')\n"
              "    if test -n \"$layer\"\n"
              "        printf \"$layer%s=\\n\" $argv\n"
              "        return\n"
              "    end\n"
              "    for word in (commandline -o)\n"
              "        if string match -q '*.net' -- $word; and test -f $word\n"
              "            printf '%s.\\n' (" COMPLETION_LAYERS " $word 2>/dev/null)\n"
              "        end\n"
              "    end\nend\n",
              out);
    }
    if (chain) {
        put_function_head(out, program, "operations");
        fputs("    set -l before (__", out);
        completion_function(out, program);
        fputs("_value | string match -r '^.*; *')\n"
              "    printf '%s\\n' \"$before\"$argv\nend\n",
              out);
    }
}

void completion_fish(FILE *out, const struct program *program) {
    const char *name = program->command->name;
    fprintf(out, "# fish completion for %s, printed by %s --completion fish\n", name, name);
    put_fish_helpers(out, program);
    fprintf(out, "complete -c %s -f\n", name);
    for (size_t i = 0; i < program->command_count; i++) {
        fprintf(out, "complete -c %s -n __fish_use_subcommand -a %s -d '", name,
                table_subcommand(&program->commands[i]));
        completion_quoted(out, program->commands[i].about, "\\");
        fputs("'\n", out);
    }
    put_command_completion(out, program, program->command);
    for (size_t i = 0; i < program->command_count; i++)
        put_command_completion(out, program, &program->commands[i]);
}
