// --help and --version.
#include <stdbool.h>
#include <string.h>

#include "cli/table.h"
#include "core/cpu.h"

enum {
    WIDTH = 90,       // columns of --help
    LEFT_LONGEST = 28 // an option longer than this has its help on the next line
};

// Words of `text` from column `column` on, broken before WIDTH; further lines
// begin at `indent`. Ends the line.
static void wrap_text(FILE *out, int column, int indent, const char *text) {
    for (bool first = true; *text; first = false) {
        int length = (int)strcspn(text, " ");
        if (!first && column + 1 + length > WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            putc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", length, text);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    putc('\n', out);
}

// "  -o, --output FILE", or "      --store[=DIR]"; its length.
static int left_side(const struct option_row *row, char *text, size_t size) {
    char letter[8] = "    ";
    if (row->letter)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    if (row->kind == OPTION_MAYBE)
        return snprintf(text, size, "  %s--%s[=%s]", letter, row->name, row->value);
    return snprintf(text, size, "  %s--%s%s%s", letter, row->name, row->value ? " " : "",
                    row->value ? row->value : "");
}

static int left_width(const struct command *command) {
    const struct option_row *row;
    int width = 0;
    for (size_t i = 0; (row = table_row(command, i)); i++) {
        char text[128];
        if (row->kind == OPTION_HEADING)
            continue;
        int length = left_side(row, text, sizeof text);
        if (length > width && length <= LEFT_LONGEST)
            width = length;
    }
    return width + 2;
}

// The help of a row, with its choices and default.
static void right_side(const struct option_row *row, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "%s", row->help);
    const char *before = ": ";
    for (const char *const *c = row->choices; c && *c && used < size; c++, before = ", ")
        used += (size_t)snprintf(text + used, size - used, "%s%s", before, *c);
    if (row->kind == OPTION_LIST && used < size)
        used += (size_t)snprintf(text + used, size - used, " (may be repeated)");
    if (row->standard && used < size)
        snprintf(text + used, size - used, " [%s]", row->standard);
}

static void print_row(FILE *out, const struct option_row *row, int width) {
    char left[128], right[1024];
    if (row->kind == OPTION_HEADING) {
        fprintf(out, "\n%s:\n", row->help);
        return;
    }
    int length = left_side(row, left, sizeof left);
    right_side(row, right, sizeof right);
    if (length + 2 > width)
        fprintf(out, "%s\n%*s", left, width, "");
    else
        fprintf(out, "%-*s", width, left);
    wrap_text(out, width, width, right);
}

static void print_usage(FILE *out, const struct command *command) {
    const char *before = "usage:", *line = command->synopsis;
    do {
        int length = (int)strcspn(line, "\n");
        fprintf(out, "%s %s %.*s\n", before, command->name, length, line);
        before = "      ";
        line += length;
    } while (*line++);
}

static void print_commands(FILE *out, const struct program *program) {
    int width = 0;
    for (size_t i = 0; i < program->command_count; i++) {
        int length = (int)strlen(table_subcommand(&program->commands[i]));
        width = length > width ? length : width;
    }
    fprintf(out, "\nCommands ('%s COMMAND --help' tells more):\n", program->command->name);
    for (size_t i = 0; i < program->command_count; i++) {
        fprintf(out, "  %-*s  ", width, table_subcommand(&program->commands[i]));
        wrap_text(out, width + 4, width + 4, program->commands[i].about);
    }
}

void help_print(FILE *out, const struct program *program) {
    const struct command *command = program->command;
    const struct option_row *row;
    int width = left_width(command);
    print_usage(out, command);
    putc('\n', out);
    wrap_text(out, 0, 0, command->about);
    if (program->command_count)
        print_commands(out, program);
    if (command->row_count && command->rows[0].kind != OPTION_HEADING)
        fputs("\nOptions:\n", out);
    for (size_t i = 0; (row = table_row(command, i)); i++)
        print_row(out, row, width);
    if (command->more)
        fprintf(out, "\n%s\n", command->more);
}

void version_print(FILE *out, const struct command *command) {
    fprintf(out, "%.*s %s\n", (int)table_program_length(command), command->name, ADAM_VERSION);
    fprintf(out, "kernels: %s (at most; ADAM_CPU chooses), processors: %d\n",
            cpu_level_name(cpu_level()), cpu_count());
}
