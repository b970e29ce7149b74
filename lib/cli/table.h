// What parser, help and completions share: the rows every command has beside
// its own, and the questions that all of them ask of a row.
#ifndef ADAM_CLI_TABLE_H
#define ADAM_CLI_TABLE_H

#include <stdio.h>

#include "cli/option.h"

// A command with the subcommands that are known in full; none for most.
struct program {
    const struct command *command;
    const struct command *commands;
    size_t command_count;
};

// Row i of the command: its own first, then a heading and the common ones,
// whose target is NULL since the parser answers them itself; NULL behind the
// last. Only whole programs have --completion.
const struct option_row *table_row(const struct command *command, size_t i);

// "adam-prep stat" is subcommand "stat" of a program of `length` characters.
size_t table_program_length(const struct command *command);
const char *table_subcommand(const struct command *command); // "" for a program

// What the value of an option, or an operand, completes to.
enum value_kind {
    VALUE_NONE,
    VALUE_FILE,
    VALUE_DIR,
    VALUE_CHOICE,
    VALUE_KEY,       // KEY=VALUE
    VALUE_LAYER_KEY, // LAYER.KEY=VALUE
    VALUE_CHAIN,     // operations, separated by ';'
    VALUE_FREE
};
enum value_kind table_value(const struct option_row *row);
enum value_kind table_operand(const struct command *command);

// The answers, on `out`.
void help_print(FILE *out, const struct program *program);
void version_print(FILE *out, const struct command *command);
void completion_print(FILE *out, const struct program *program, const char *shell);
void completion_bash(FILE *out, const struct program *program);
void completion_zsh(FILE *out, const struct program *program);
void completion_fish(FILE *out, const struct program *program);

// The three: which helper functions a program's script needs, and what they are called with.
bool completion_needs(const struct program *program, enum value_kind kind);
// The names of the layers in the model files of $1, $2... of a shell.
#define COMPLETION_LAYERS                                                                          \
    "awk '$1 ~ /^[a-z]/ { n = ++count[$1]; print $2 ~ /^[A-Za-z][A-Za-z0-9_-]*$/ ? $2 : "          \
    "$1 (n > 1 || $1 != \"input\" ? n : \"\") }'"
void completion_words(FILE *out, option_words *words, const char *between);

// For the three: "a b c", names of subcommands, adam_prep for adam-prep, and
// text within single quotes with a backslash before each character of `special`.
void completion_choices(FILE *out, const struct option_row *row);
void completion_subcommands(FILE *out, const struct program *program, const char *between);
void completion_function(FILE *out, const struct program *program);
void completion_quoted(FILE *out, const char *text, const char *special);

#endif
