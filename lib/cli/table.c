#include "cli/table.h"

#include <string.h>

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

static const struct option_row common[] = {
    HEADING("About the program"),
    FLAG('h', "help", NULL, "print this text"),
    FLAG('V', "version", NULL, "print the version and the processor features in use"),
    CHOICE(0, "completion", "SHELL", NULL, shells, NULL, "print the completion script for a shell"),
};

const struct option_row *table_row(const struct command *command, size_t i) {
    size_t count = sizeof common / sizeof *common - (*table_subcommand(command) != 0);
    if (i < command->row_count)
        return &command->rows[i];
    i -= command->row_count;
    return i < count ? &common[i] : NULL;
}

size_t table_program_length(const struct command *command) {
    return strcspn(command->name, " ");
}

const char *table_subcommand(const struct command *command) {
    const char *blank = strchr(command->name, ' ');
    return blank ? blank + 1 : "";
}

static enum value_kind named_kind(const char *metavariable) {
    if (strstr(metavariable, "FILE"))
        return VALUE_FILE;
    return strstr(metavariable, "DIR") ? VALUE_DIR : VALUE_FREE;
}

enum value_kind table_value(const struct option_row *row) {
    if (row->kind == OPTION_FLAG || row->kind == OPTION_MAYBE || row->kind == OPTION_HEADING)
        return VALUE_NONE;
    if (row->words)
        return strchr(row->value, '.')   ? VALUE_LAYER_KEY
               : strchr(row->value, '=') ? VALUE_KEY
                                         : VALUE_CHAIN;
    return row->kind == OPTION_CHOICE ? VALUE_CHOICE : named_kind(row->value);
}

enum value_kind table_operand(const struct command *command) {
    return command->operand ? named_kind(command->operand) : VALUE_NONE;
}
