// --completion: a script for bash, zsh or fish, written from the tables alone.
#include <string.h>

#include "cli/table.h"

void completion_choices(FILE *out, const struct option_row *row) {
    for (const char *const *c = row->choices; *c; c++)
        fprintf(out, "%s%s", c == row->choices ? "" : " ", *c);
}

void completion_words(FILE *out, option_words *words, const char *between) {
    for (size_t i = 0; words(i); i++)
        fprintf(out, "%s%s", i ? between : "", words(i));
}

static bool command_takes(const struct command *command, enum value_kind kind) {
    const struct option_row *row;
    if (kind == VALUE_KEY && command->keys)
        return true;
    for (size_t i = 0; (row = table_row(command, i)); i++)
        if (table_value(row) == kind)
            return true;
    return false;
}

bool completion_needs(const struct program *program, enum value_kind kind) {
    bool needs = command_takes(program->command, kind);
    for (size_t i = 0; i < program->command_count; i++)
        needs = needs || command_takes(&program->commands[i], kind);
    return needs;
}

void completion_subcommands(FILE *out, const struct program *program, const char *between) {
    for (size_t i = 0; i < program->command_count; i++)
        fprintf(out, "%s%s", i ? between : "", table_subcommand(&program->commands[i]));
}

void completion_function(FILE *out, const struct program *program) {
    for (const char *name = program->command->name; *name; name++)
        putc(*name == '-' ? '_' : *name, out);
}

void completion_quoted(FILE *out, const char *text, const char *special) {
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\'", out);
        else if (strchr(special, *text))
            putc('\\', out);
        putc(*text, out);
    }
}

void completion_print(FILE *out, const struct program *program, const char *shell) {
    if (!strcmp(shell, "bash"))
        completion_bash(out, program);
    else if (!strcmp(shell, "zsh"))
        completion_zsh(out, program);
    else
        completion_fish(out, program);
}
