// The text of a chain into operations:
//
//   chain      operation ; operation ; ...      empty ones are left out
//   operation  name parameter parameter ...     separated by blanks
//   parameter  value, or name=value             "=15" is a value: exactly 15
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"
#include "ops/op.h"
#include "ops/picture.h"

struct token {
    const char *text;
    size_t length;
};

// Where parsing stands, and where a mistake is reported.
struct parser {
    const char *text;
    size_t *offset, *length;
    struct error *err;
};

// A word of the user's for a message: short, and without control characters.
struct shown {
    char text[48];
};

static struct shown shown_token(struct token token) {
    struct shown s;
    bool cut = token.length >= sizeof s.text;
    size_t n = cut ? sizeof s.text - 4 : token.length;
    for (size_t i = 0; i < n; i++)
        s.text[i] = iscntrl((unsigned char)token.text[i]) ? '?' : token.text[i];
    memcpy(s.text + n, cut ? "..." : "", cut ? 4 : 1);
    return s;
}

__attribute__((format(printf, 3, 4))) static int
refuse(const struct parser *parser, struct token token, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    *parser->offset = (size_t)(token.text - parser->text);
    *parser->length = token.length;
    return error_set(parser->err, STATUS_USAGE, "%s", text);
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// The next word before `end`, or one of length 0 at `end`.
static struct token next_token(const char *at, const char *end) {
    while (at < end && is_blank(*at))
        at++;
    struct token token = {at, 0};
    while (at + token.length < end && !is_blank(at[token.length]))
        token.length++;
    return token;
}

static bool token_is(struct token token, const char *word) {
    return strlen(word) == token.length && memcmp(token.text, word, token.length) == 0;
}

static struct text_hint hint_of(struct token token, const char *const *words, size_t n) {
    return text_hint(text_nearest(token.text, token.length, words, n));
}

static bool is_in_range(double v, const struct op_parameter *parameter) {
    return v >= parameter->low && v <= parameter->high;
}

static bool read_whole(struct token token, const struct op_parameter *parameter, int *value) {
    int64_t v;
    if (!text_integer(token.text, token.length, &v) || !is_in_range((double)v, parameter))
        return false;
    *value = (int)v;
    return true;
}

static bool read_size(struct token token, const struct op_parameter *parameter,
                      struct op_value *value) {
    const char *x = memchr(token.text, 'x', token.length);
    value->square = !x;
    if (!x) {
        bool ok = read_whole(token, parameter, &value->width);
        value->height = value->width;
        return ok;
    }
    struct token width = {token.text, (size_t)(x - token.text)};
    struct token height = {x + 1, token.length - width.length - 1};
    return read_whole(width, parameter, &value->width) &&
           read_whole(height, parameter, &value->height);
}

static bool read_list(struct token token, const struct op_parameter *parameter,
                      struct op_value *value) {
    const char *at = token.text, *end = token.text + token.length;
    for (value->count = 0; value->count < OP_LIST_MOST; value->count++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        size_t length = (size_t)((comma ? comma : end) - at);
        double v;
        if (!text_real(at, length, &v) || !is_in_range(v, parameter))
            return false;
        value->list[value->count] = (float)v;
        if (!comma)
            return ++value->count > 0;
        at = comma + 1;
    }
    return false;
}

static const char *find_dots(struct token token) {
    for (size_t i = 0; i + 1 < token.length; i++)
        if (token.text[i] == '.' && token.text[i + 1] == '.')
            return token.text + i;
    return NULL;
}

// Reads "A..B", "=N" and, by kind, "N" into low and high.
static bool read_range(struct token token, const struct op_parameter *parameter,
                       struct op_value *value) {
    const char *dots = find_dots(token);
    if (dots) {
        size_t n = (size_t)(dots - token.text);
        return text_real(token.text, n, &value->low) &&
               text_real(dots + 2, token.length - n - 2, &value->high);
    }
    bool exact = token.length > 0 && token.text[0] == '=';
    double v;
    if (!text_real(token.text + exact, token.length - exact, &v))
        return false;
    value->low = value->high = v;
    if (exact || parameter->kind == OP_RANGE)
        return true;
    if (parameter->kind == OP_FACTOR)
        value->low = 1 - v, value->high = 1 + v;
    else
        value->low = -v, value->high = v;
    return v >= 0;
}

static bool read_number(struct token token, const struct op_parameter *parameter,
                        struct op_value *value) {
    bool ok = parameter->kind == OP_REAL || parameter->kind == OP_COUNT
                  ? text_real(token.text, token.length, &value->low)
                  : read_range(token, parameter, value);
    if (parameter->kind == OP_REAL || parameter->kind == OP_COUNT)
        value->high = value->low;
    bool whole = parameter->kind == OP_COUNT || parameter->kind == OP_SHIFT;
    return ok && value->low <= value->high && is_in_range(value->low, parameter) &&
           is_in_range(value->high, parameter) &&
           (!whole || (value->low == rint(value->low) && value->high == rint(value->high)));
}

static size_t count_words(const char *const *words) {
    size_t n = 0;
    while (words[n])
        n++;
    return n;
}

static bool read_word(struct token token, const struct op_parameter *parameter,
                      struct op_value *value) {
    for (int i = 0; parameter->words[i]; i++)
        if (token_is(token, parameter->words[i])) {
            value->word = i;
            return true;
        }
    return false;
}

static bool read_value(struct token token, const struct op_parameter *parameter,
                       struct op_value *value) {
    switch (parameter->kind) {
    case OP_WORD:
        return read_word(token, parameter, value);
    case OP_SIZE:
        return read_size(token, parameter, value);
    case OP_LIST:
        return read_list(token, parameter, value);
    case OP_FILE:
        return token.length > 0;
    case OP_IMAGE:
        return picture_read(&value->image, token.text, token.length);
    default:
        return read_number(token, parameter, value);
    }
}

// What a value of this kind looks like, for messages.
static void describe_value(char *text, size_t size, const struct op_parameter *parameter) {
    static const char *const forms[] = {
        [OP_REAL] = "a number",
        [OP_COUNT] = "a whole number",
        [OP_SIZE] = "N or WIDTHxHEIGHT with whole numbers",
        [OP_LIST] = "one number, or one for each channel separated by commas, each",
        [OP_RANGE] = "a number N, or a range A..B,",
        [OP_SPREAD] = "N for -N..N, a range A..B, or =N for exactly N,",
        [OP_SHIFT] = "N for -N..N, a range A..B, or =N for exactly N, in whole pixels",
        [OP_FACTOR] = "N for 1-N..1+N, a range A..B, or =N for exactly N,",
    };
    if (parameter->kind == OP_FILE || parameter->kind == OP_IMAGE) {
        snprintf(text, size, "%s", parameter->value);
        return;
    }
    if (parameter->kind != OP_WORD) {
        snprintf(text, size, "%s from %g to %g", forms[parameter->kind], parameter->low,
                 parameter->high);
        return;
    }
    int used = snprintf(text, size, "one of");
    for (int i = 0; parameter->words[i]; i++)
        used +=
            snprintf(text + used, size - (size_t)used, "%s %s", i ? "," : "", parameter->words[i]);
}

static const char *parameter_name(const struct op_parameter *parameter) {
    return parameter->name ? parameter->name : parameter->value;
}

static int refuse_value(const struct parser *parser, const struct op *op, struct token token,
                        const struct op_parameter *parameter) {
    char wanted[160];
    struct text_hint near = {""};
    describe_value(wanted, sizeof wanted, parameter);
    if (parameter->kind == OP_WORD)
        near = hint_of(token, parameter->words, count_words(parameter->words));
    return refuse(parser, token, "%s: %s is '%s', not %s%s", op->info->name,
                  parameter_name(parameter), shown_token(token).text, wanted, near.text);
}

// Puts a value where it belongs; -1 is the probability.
static int put_value(const struct parser *parser, struct op *op, int index, struct token token) {
    struct op_value p = {0};
    const struct op_parameter *parameter =
        index < 0 ? ops_probability() : &op->info->parameters[index];
    struct op_value *value = index < 0 ? &p : &op->values[index];
    if (!read_value(token, parameter, value))
        return refuse_value(parser, op, token, parameter);
    value->given = true;
    if (index < 0)
        op->probability = p.low;
    return STATUS_OK;
}

static int unknown_parameter(const struct parser *parser, const struct op *op, struct token name) {
    const char *names[OP_VALUES_MOST + 1] = {ops_probability()->name};
    size_t n = 1;
    for (size_t i = 0; i < op->info->parameter_count; i++)
        if (op->info->parameters[i].name)
            names[n++] = op->info->parameters[i].name;
    return refuse(parser, name, "%s: unknown parameter '%s'%s", op->info->name,
                  shown_token(name).text, hint_of(name, names, n).text);
}

static int put_named(const struct parser *parser, struct op *op, struct token token,
                     const char *equals) {
    struct token name = {token.text, (size_t)(equals - token.text)};
    struct token text = {equals + 1, token.length - name.length - 1};
    int index = -2;
    if (token_is(name, ops_probability()->name))
        index = -1;
    for (size_t i = 0; i < op->info->parameter_count; i++)
        if (op->info->parameters[i].name && token_is(name, op->info->parameters[i].name))
            index = (int)i;
    if (index == -2)
        return unknown_parameter(parser, op, name);
    if (index < 0 ? op->probability >= 0 : op->values[index].given)
        return refuse(parser, token, "%s: %s is given twice", op->info->name,
                      shown_token(name).text);
    int status = put_value(parser, op, index, text);
    if (index >= 0) {
        op->values[index].offset = (size_t)(token.text - parser->text);
        op->values[index].length = token.length;
    }
    return status;
}

static int put_positional(const struct parser *parser, struct op *op, struct token token) {
    for (size_t i = 0; i < op->info->parameter_count; i++)
        if (!op->info->parameters[i].name && !op->values[i].given)
            return put_value(parser, op, (int)i, token);
    return refuse(parser, token, "%s: '%s' is one value too many", op->info->name,
                  shown_token(token).text);
}

// Defaults come from the table's text, by the same reader.
static int put_defaults(const struct parser *parser, struct op *op, struct token name) {
    for (size_t i = 0; i < op->info->parameter_count; i++) {
        const struct op_parameter *parameter = &op->info->parameters[i];
        const char *text = parameter->default_text;
        if (op->values[i].given || (text && !*text))
            continue;
        if (!text)
            return refuse(parser, name, "%s: %s is missing; it is written '%s'", op->info->name,
                          parameter_name(parameter), op->info->synopsis);
        if (!read_value((struct token){text, strlen(text)}, parameter, &op->values[i]))
            return error_set(parser->err, STATUS_BUG, "the default of %s is wrong", text);
    }
    if (op->probability < 0)
        op->probability = 1;
    return STATUS_OK;
}

static bool draws_numbers(const struct op *op) {
    if (op->probability > 0 && op->probability < 1)
        return true;
    if (op->probability == 0)
        return false;
    if (op->info->code->draws)
        return true;
    if (op->info->code == &op_crop)
        return op->values[CROP_PLACE].word == PLACE_RANDOM;
    for (size_t i = 0; i < op->info->parameter_count; i++)
        if (op->values[i].low != op->values[i].high)
            return true;
    return false;
}

static const struct op_info *find_op(struct token name) {
    size_t count;
    const struct op_info *table = ops_table(&count);
    for (size_t i = 0; i < count; i++)
        if (token_is(name, table[i].name))
            return &table[i];
    return NULL;
}

static int unknown_op(const struct parser *parser, struct token name) {
    const char *names[64];
    size_t count, n = 0;
    const struct op_info *table = ops_table(&count);
    for (; n < count && n < sizeof names / sizeof *names; n++)
        names[n] = table[n].name;
    return refuse(parser, name, "unknown operation '%s'%s", shown_token(name).text,
                  hint_of(name, names, n).text);
}

// A mean is given in one way, and a file only where somebody will put the picture in its place.
static int check_mean(const struct parser *parser, const struct op *op, struct token name,
                      unsigned flags) {
    const struct op_value *v = op->values;
    if (op->info->code != &op_mean)
        return STATUS_OK;
    if (v[MEAN_VALUES].given + v[MEAN_FILE].given + v[MEAN_IMAGE].given != 1)
        return refuse(parser, name, "mean: give one of MEAN, file= and image=");
    struct token file = {parser->text + v[MEAN_FILE].offset, v[MEAN_FILE].length};
    if (v[MEAN_FILE].given && !(flags & OPS_FILES))
        return refuse(parser, file,
                      "mean: file= is for the input of a model, which keeps the picture");
    return STATUS_OK;
}

static int parse_op(const struct parser *parser, struct op *op, struct token name, const char *end,
                    unsigned flags) {
    *op = (struct op){.info = find_op(name), .probability = -1};
    if (!op->info)
        return unknown_op(parser, name);
    struct token token = name;
    for (;;) {
        op->offset = (size_t)(name.text - parser->text);
        op->length = (size_t)(token.text + token.length - name.text);
        token = next_token(token.text + token.length, end);
        if (!token.length)
            break;
        const char *equals = memchr(token.text, '=', token.length);
        int status = equals && equals > token.text ? put_named(parser, op, token, equals)
                                                   : put_positional(parser, op, token);
        if (status)
            return status;
    }
    int status = put_defaults(parser, op, name);
    if (!status)
        status = check_mean(parser, op, name, flags);
    op->random = draws_numbers(op);
    return status;
}

static int append_op(struct ops *ops, const struct op *op, struct error *err) {
    // Powers of two: grown whenever one is reached.
    if ((ops->count & (ops->count - 1)) == 0) {
        struct op *list = mem_resize(ops->list, ops->count ? 2 * ops->count : 1, sizeof *ops->list);
        if (!list)
            return error_nomem(err);
        ops->list = list;
    }
    ops->list[ops->count++] = *op;
    return STATUS_OK;
}

// What its values own.
static void op_free(struct op *op) {
    for (int i = 0; i < OP_VALUES_MOST; i++)
        image_free(&op->values[i].image);
}

static int parse_chain(const struct parser *parser, struct ops *ops, unsigned flags) {
    const char *at = parser->text;
    for (;;) {
        const char *end = at + strcspn(at, ";");
        struct token name = next_token(at, end);
        if (name.length) {
            struct op op;
            int status = parse_op(parser, &op, name, end, flags);
            struct token whole = {parser->text + op.offset, op.length};
            if (!status && (flags & OPS_DETERMINISTIC) && op.random)
                status = refuse(parser, whole,
                                "%s: '%s' draws random numbers, and here every picture must "
                                "always come out the same",
                                op.info->name, shown_token(whole).text);
            if (!status)
                status = append_op(ops, &op, parser->err);
            if (status) {
                op_free(&op);
                return status;
            }
        }
        if (!*end)
            return STATUS_OK;
        at = end + 1;
    }
}

int ops_parse(struct ops **out, const char *text, unsigned flags, size_t *offset, size_t *length,
              struct error *err) {
    *offset = *length = 0;
    *out = NULL;
    struct ops *ops = mem_zeroed(1, sizeof *ops);
    if (!ops)
        return error_nomem(err);
    struct parser parser = {.text = text, .offset = offset, .length = length, .err = err};
    int status = parse_chain(&parser, ops, flags);
    if (status) {
        ops_free(ops);
        return status;
    }
    *out = ops;
    return STATUS_OK;
}

void ops_free(struct ops *ops) {
    if (!ops)
        return;
    for (size_t i = 0; i < ops->count; i++)
        op_free(&ops->list[i]);
    free(ops->list);
    free(ops);
}
