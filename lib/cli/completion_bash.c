#include "cli/table.h"

// How the helper function of the script is asked for a kind of value.
static void put_offer(FILE *out, enum value_kind kind) {
    if (kind == VALUE_FILE)
        fputs(" offer -f", out);
    else if (kind == VALUE_DIR)
        fputs(" offer -d", out);
}

// What offers a value that is neither free nor a path: a helper of the script with its words.
static void put_value_words(FILE *out, const struct option_row *row, enum value_kind kind) {
    static const char *const helpers[] = {
        [VALUE_CHOICE] = "offer -W",
        [VALUE_KEY] = "offer_key",
        [VALUE_LAYER_KEY] = "offer_layer_key",
        [VALUE_CHAIN] = "offer_operation",
    };
    fprintf(out, " %s '", helpers[kind]);
    if (kind == VALUE_CHOICE)
        completion_choices(out, row);
    else
        completion_words(out, row->words, " ");
    putc('\'', out);
}

// One branch for each option with a value: "stat:--format | stat:-f) ... ;;"
static void put_value_branches(FILE *out, const struct command *command) {
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
        if (kind == VALUE_CHOICE || row->words)
            put_value_words(out, row, kind);
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
    if (command->keys) {
        fputs(" if [ \"$COMP_CWORD\" -gt 2 ]; then offer_key '", out);
        completion_words(out, command->keys, " ");
        fputs("'; return; fi;", out);
    }
    put_offer(out, table_operand(command));
    fputs(" ;;\n", out);
}

// Helpers that only some programs need. A word that ends in '=' or '.' goes on.
static void put_bash_helpers(FILE *out, const struct program *program) {
    bool keys = completion_needs(program, VALUE_KEY);
    bool layers = completion_needs(program, VALUE_LAYER_KEY);
    if (keys || layers)
        fputs("    unfinished() { compopt +o filenames -o nospace 2>/dev/null || :; }\n", out);
    if (keys)
        fputs("    offer_key() { unfinished; offer -S = -W \"$1\"; }\n", out);
    if (layers)
        fputs("    offer_layer_key() {\n"
              "        local layer=${current%%.*} word models=()\n"
              "        unfinished\n"
              "        if [ \"$layer\" != \"$current\" ]; then\n"
              "            current=${current#*.}\n"
              "            offer -P \"$layer.\" -S = -W \"$1\"\n"
              "            return\n"
              "        fi\n"
              "        for word in \"${COMP_WORDS[@]}\"; do\n"
              "            if [[ $word = *.net && -f $word ]]; then models+=(\"$word\"); fi\n"
              "        done\n"
              "        if [ \"${#models[@]}\" -eq 0 ]; then return; fi\n"
              "        offer -S . -W \"$(" COMPLETION_LAYERS " \"${models[@]}\" 2>/dev/null)\"\n"
              "    }\n",
              out);
    if (completion_needs(program, VALUE_CHAIN))
        fputs("    # The operation behind the last ';'; readline keeps the quote that opened it.\n"
              "    offer_operation() {\n"
              "        local chain=${current#[\\\"\\']} before=\n"
              "        current=${chain##*;}\n"
              "        current=${current#\"${current%%[! ]*}\"}\n"
              "        before=${chain%\"$current\"}\n"
              "        offer -P \"$before\" -W \"$1\"\n"
              "    }\n",
              out);
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
          "    }\n",
          out);
    put_bash_helpers(out, program);
    fputs("    # bash makes three words of --name=value.\n"
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
    put_value_branches(out, command);
    for (size_t i = 0; i < program->command_count; i++)
        put_value_branches(out, &program->commands[i]);
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
