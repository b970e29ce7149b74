#include "cli/option.h"

#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"

// The walk over argv. Words before `next` are read; of these, the operands are
// argv[first..next) and everything before `first` belonged to options.
struct walk {
    const struct command *command;
    const struct program *program; // what --help and --completion tell of
    char **argv;
    int argc, first, next;
    struct error *err;
};

static int usage_error(struct walk *walk, const char *what, const char *option, const char *text) {
    return error_set(walk->err, STATUS_USAGE, "option '%s' %s, not '%s'", option, what, text);
}

// How the user wrote the option, for messages: "--copies", or "-c" from "-qc4".
struct spelling {
    char text[64];
};

static struct spelling option_spelling(const struct option_row *row, bool is_long) {
    struct spelling s = {"-?"};
    if (is_long)
        snprintf(s.text, sizeof s.text, "--%s", row->name);
    else
        s.text[1] = row->letter;
    return s;
}

// "from 1 to 9", or "of at least 1" where there is no upper end worth naming.
static void describe_range(char *text, size_t size, const char *noun, double low, double high) {
    const double endless = 9e18;
    if (high < endless && low > -endless)
        snprintf(text, size, "needs a %s from %.15g to %.15g", noun, low, high);
    else if (low > -endless)
        snprintf(text, size, "needs a %s of at least %.15g", noun, low);
    else if (high < endless)
        snprintf(text, size, "needs a %s of at most %.15g", noun, high);
    else
        snprintf(text, size, "needs a %s", noun);
}

static int set_int(struct walk *walk, const struct option_row *row, const char *name,
                   const char *text) {
    int64_t value;
    char what[128];
    if (text_integer(text, strlen(text), &value) && (double)value >= row->low &&
        (double)value <= row->high)
        return *(int64_t *)row->target = value, STATUS_OK;
    describe_range(what, sizeof what, "whole number", row->low, row->high);
    return usage_error(walk, what, name, text);
}

static int set_option_real(struct walk *walk, const struct option_row *row, const char *name,
                           const char *text) {
    double value;
    char what[128];
    if (text_real(text, strlen(text), &value) && value >= row->low && value <= row->high)
        return *(double *)row->target = value, STATUS_OK;
    describe_range(what, sizeof what, "number", row->low, row->high);
    return usage_error(walk, what, name, text);
}

static int set_bytes(struct walk *walk, const struct option_row *row, const char *name,
                     const char *text) {
    static const char units[] = "KMG";
    size_t length = strlen(text);
    const char *unit = length ? strchr(units, text[length - 1]) : NULL;
    uint64_t scale = unit ? UINT64_C(1) << 10 * (unit - units + 1) : 1;
    int64_t count;
    uint64_t bytes;
    if (!text_integer(text, length - (unit != NULL), &count) || count < 0 ||
        __builtin_mul_overflow((uint64_t)count, scale, &bytes))
        return usage_error(walk, "needs a size such as 4096, 64K, 16M or 2G", name, text);
    *(uint64_t *)row->target = bytes;
    return STATUS_OK;
}

static int set_time(struct walk *walk, const char *name, double *seconds, const char *text) {
    static const char units[] = "smh";
    static const double scales[] = {1, 60, 3600};
    size_t length = strlen(text);
    const char *unit = length ? strchr(units, text[length - 1]) : NULL;
    double count;
    if (!text_real(text, length - (unit != NULL), &count) || !(count > 0))
        return usage_error(walk, "needs a time such as 30s, 1.5m or 2h", name, text);
    *seconds = count * (unit ? scales[unit - units] : 1);
    return STATUS_OK;
}

static int set_choice(struct walk *walk, const struct option_row *row, const char *name,
                      const char *text) {
    char what[512] = "needs one of ";
    size_t count = 0;
    for (const char *const *c = row->choices; *c; c++, count++) {
        if (!strcmp(*c, text))
            return *(const char **)row->target = *c, STATUS_OK;
        size_t used = strlen(what);
        snprintf(what + used, sizeof what - used, "%s%s", count ? ", " : "", *c);
    }
    const char *near = text_nearest(text, strlen(text), row->choices, count);
    if (!near)
        return usage_error(walk, what, name, text);
    return error_set(walk->err, STATUS_USAGE, "option '%s' %s, not '%s'; did you mean '%s'?", name,
                     what, text, near);
}

static int set_list(struct walk *walk, const struct option_row *row, const char *text) {
    struct option_list *list = row->target;
    const char **items = mem_resize(list->items, list->count + 1, sizeof *items);
    if (!items)
        return error_nomem(walk->err);
    list->items = items;
    list->items[list->count++] = text;
    return STATUS_OK;
}

static int set_value(struct walk *walk, const struct option_row *row, const char *name,
                     const char *text) {
    switch (row->kind) {
    case OPTION_INT:
        return set_int(walk, row, name, text);
    case OPTION_REAL:
        return set_option_real(walk, row, name, text);
    case OPTION_BYTES:
        return set_bytes(walk, row, name, text);
    case OPTION_TIME:
        return set_time(walk, name, row->target, text);
    case OPTION_CHOICE:
        return set_choice(walk, row, name, text);
    case OPTION_LIST:
        return set_list(walk, row, text);
    case OPTION_TEXT:
    case OPTION_MAYBE:
        return *(const char **)row->target = text, STATUS_OK;
    case OPTION_HEADING:
    case OPTION_FLAG:
        break;
    }
    return error_set(walk->err, STATUS_BUG, "option '%s' has no kind of value", name);
}

// --help, --version, --completion: answered at once, whatever follows.
static enum cli_next answer_request(struct walk *walk, const struct option_row *row,
                                    const char *name, const char *value) {
    const char *shell = NULL;
    struct option_row choice = *row;
    choice.target = &shell;
    if (row->kind == OPTION_CHOICE && set_choice(walk, &choice, name, value) != STATUS_OK)
        return CLI_FAIL;
    if (shell)
        completion_print(stdout, walk->program, shell);
    else if (row->letter == 'h')
        help_print(stdout, walk->program);
    else
        version_print(stdout, walk->command);
    return CLI_DONE;
}

static enum cli_next apply_option(struct walk *walk, const struct option_row *row, const char *name,
                                  const char *value) {
    const struct command *command = walk->command;
    if (!row->target)
        return answer_request(walk, row, name, value);
    if (command->given)
        command->given[row - command->rows] = true;
    if (row->kind == OPTION_FLAG)
        return *(bool *)row->target = true, CLI_RUN;
    return set_value(walk, row, name, value) == STATUS_OK ? CLI_RUN : CLI_FAIL;
}

// The next word as a value; NULL, with err set, when there is none.
static const char *take_value(struct walk *walk, const struct option_row *row, const char *name) {
    if (walk->next < walk->argc)
        return walk->argv[walk->next++];
    error_set(walk->err, STATUS_USAGE, "option '%s' needs a value: %s %s", name, name, row->value);
    return NULL;
}

static void unknown_long(struct walk *walk, const char *name, size_t length) {
    const char *best = NULL;
    const struct option_row *row;
    size_t count = 0;
    for (size_t i = 0; table_row(walk->command, i); i++)
        count++;
    const char **names = mem_array(count, sizeof *names);
    size_t named = 0;
    for (size_t i = 0; names && (row = table_row(walk->command, i)); i++)
        if (row->kind != OPTION_HEADING)
            names[named++] = row->name;
    if (names)
        best = text_nearest(name, length, names, named);
    free(names);
    if (best)
        error_set(walk->err, STATUS_USAGE, "unknown option '--%.*s'; did you mean '--%s'?",
                  (int)length, name, best);
    else
        error_set(walk->err, STATUS_USAGE, "unknown option '--%.*s'; '%s --help' lists them all",
                  (int)length, name, walk->command->name);
}

// The row whose whole name this is; NULL when none.
static const struct option_row *find_exact(const struct command *command, const char *name,
                                           size_t length) {
    const struct option_row *row;
    for (size_t i = 0; (row = table_row(command, i)); i++)
        if (row->kind != OPTION_HEADING && strlen(row->name) == length &&
            !memcmp(row->name, name, length))
            return row;
    return NULL;
}

// That, or the only one whose name begins so; NULL with err set.
static const struct option_row *find_long(struct walk *walk, const char *name, size_t length) {
    const struct option_row *found = find_exact(walk->command, name, length), *row;
    if (found)
        return found;
    for (size_t i = 0; (row = table_row(walk->command, i)); i++) {
        if (row->kind == OPTION_HEADING || strncmp(row->name, name, length) != 0)
            continue;
        if (found) {
            error_set(walk->err, STATUS_USAGE,
                      "ambiguous option '--%.*s'; it could be '--%s' or '--%s'", (int)length, name,
                      found->name, row->name);
            return NULL;
        }
        found = row;
    }
    if (!found)
        unknown_long(walk, name, length);
    return found;
}

static enum cli_next parse_long(struct walk *walk, const char *word) {
    size_t length = strcspn(word, "=");
    const char *value = word[length] ? word + length + 1 : NULL;
    const struct option_row *row = find_long(walk, word, length);
    if (!row)
        return CLI_FAIL;
    struct spelling name = option_spelling(row, true);
    if (row->kind == OPTION_FLAG && value) {
        error_set(walk->err, STATUS_USAGE, "option '%s' takes no value", name.text);
        return CLI_FAIL;
    }
    if (row->kind == OPTION_MAYBE && !value)
        value = "";
    if (row->kind != OPTION_FLAG && !value && !(value = take_value(walk, row, name.text)))
        return CLI_FAIL;
    return apply_option(walk, row, name.text, value);
}

static const struct option_row *find_letter(struct walk *walk, char letter) {
    const struct option_row *row;
    for (size_t i = 0; (row = table_row(walk->command, i)); i++)
        if (row->kind != OPTION_HEADING && row->letter == letter)
            return row;
    error_set(walk->err, STATUS_USAGE, "unknown option '-%c'; '%s --help' lists them all", letter,
              walk->command->name);
    return NULL;
}

// "-qc4", "-qc 4": flags, then perhaps one option with a value.
static enum cli_next parse_letters(struct walk *walk, const char *letters) {
    enum cli_next next = CLI_RUN;
    while (next == CLI_RUN && *letters) {
        const struct option_row *row = find_letter(walk, *letters++);
        if (!row)
            return CLI_FAIL;
        struct spelling name = option_spelling(row, false);
        const char *value = NULL;
        if (row->kind != OPTION_FLAG) {
            value = *letters ? letters : take_value(walk, row, name.text);
            letters = "";
            if (!value)
                return CLI_FAIL;
        }
        next = apply_option(walk, row, name.text, value);
    }
    return next;
}

// Moves the words of an option, argv[from..next), before the operands.
static void put_before_operands(struct walk *walk, int from) {
    int operands = from - walk->first;
    for (int i = from; i < walk->next; i++) {
        char *word = walk->argv[i];
        memmove(&walk->argv[i - operands + 1], &walk->argv[i - operands],
                (size_t)operands * sizeof *walk->argv);
        walk->argv[i - operands] = word;
    }
    walk->first += walk->next - from;
}

static enum cli_next parse_arguments(struct walk *walk) {
    while (walk->next < walk->argc) {
        int from = walk->next;
        const char *word = walk->argv[walk->next++];
        enum cli_next next = CLI_RUN;
        if (word[0] != '-' || !word[1])
            continue; // an operand; a lone "-" is one
        if (word[1] != '-')
            next = parse_letters(walk, word + 1);
        else if (word[2])
            next = parse_long(walk, word + 2);
        if (next != CLI_RUN)
            return next;
        put_before_operands(walk, from);
        if (!strcmp(word, "--"))
            break;
    }
    return CLI_RUN;
}

// The words of argv from `start` on.
static enum cli_next parse_from(struct walk *walk, int start, int *operands) {
    walk->first = walk->next = start;
    enum cli_next next = parse_arguments(walk);
    *operands = walk->first;
    return next;
}

enum cli_next cli_parse(const struct command *command, int argc, char **argv, int *operands,
                        struct error *err) {
    struct program alone = {.command = command};
    struct walk walk = {
        .command = command, .program = &alone, .argv = argv, .argc = argc, .err = err};
    return parse_from(&walk, 1, operands);
}

// What a program that only has subcommands says to any other word, or to none.
static enum cli_next no_command(const struct program *program, const char *word,
                                struct error *err) {
    const char *name = program->command->name, *near = NULL;
    const char **names = mem_array(program->command_count, sizeof *names);
    for (size_t i = 0; names && i < program->command_count; i++)
        names[i] = table_subcommand(&program->commands[i]);
    if (names && word)
        near = text_nearest(word, strlen(word), names, program->command_count);
    free(names);
    if (!word)
        error_set(err, STATUS_USAGE, "no command given; '%s --help' lists them", name);
    else if (near)
        error_set(err, STATUS_USAGE, "unknown command '%s'; did you mean '%s'?", word, near);
    else
        error_set(err, STATUS_USAGE, "unknown command '%s'; '%s --help' lists them", word, name);
    return CLI_FAIL;
}

enum cli_next cli_parse_program(const struct command *program, const struct command *commands,
                                size_t command_count, int argc, char **argv,
                                const struct command **chosen, int *operands, struct error *err) {
    struct program whole = {program, commands, command_count};
    *chosen = program;
    for (size_t i = 0; argc > 1 && i < command_count; i++) {
        if (strcmp(table_subcommand(&commands[i]), argv[1]) != 0)
            continue;
        struct program alone = {.command = *chosen = &commands[i]};
        struct walk walk = {
            .command = *chosen, .program = &alone, .argv = argv, .argc = argc, .err = err};
        return parse_from(&walk, 2, operands);
    }
    struct walk walk = {
        .command = program, .program = &whole, .argv = argv, .argc = argc, .err = err};
    enum cli_next next = parse_from(&walk, 1, operands);
    if (next != CLI_RUN || program->row_count)
        return next;
    return no_command(&whole, *operands < argc ? argv[*operands] : NULL, err);
}
