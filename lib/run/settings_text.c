// Settings as text: KEY=VALUE, what people write and other processes read.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/text.h"
#include "core/utf8.h"
#include "run/settings_internal.h"

static int refuse_value(const struct settings_row *row, const char *value, const char *what,
                        struct error *err) {
    return error_set(err, STATUS_USAGE, "%s is %s of %g to %g, not '%s'", row->name, what, row->low,
                     row->high, value);
}

static int set_text(char *member, const struct settings_row *row, const char *value,
                    struct error *err) {
    size_t count = 0;
    bool good = !row->choices && *value;
    for (; row->choices && row->choices[count]; count++)
        good = good || !strcmp(row->choices[count], value);
    if (good) {
        memcpy(member, &value, sizeof value);
        return STATUS_OK;
    }
    if (!row->choices)
        return error_set(err, STATUS_USAGE, "%s needs a value", row->name);
    char list[128] = "";
    for (size_t i = 0, n = 0; i < count && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", row->choices[i]);
    return error_set(err, STATUS_USAGE, "%s is one of %s, not '%s'", row->name, list, value);
}

static int set_count(char *member, const struct settings_row *row, const char *value,
                     struct error *err) {
    int64_t count;
    if (!text_integer(value, strlen(value), &count) || (double)count < row->low ||
        (double)count > row->high)
        return refuse_value(row, value, "a whole number", err);
    memcpy(member, &count, sizeof count);
    return STATUS_OK;
}

static int set_row_real(char *member, const struct settings_row *row, const char *value,
                        struct error *err) {
    double real;
    if (!text_real(value, strlen(value), &real) || real < row->low || real > row->high)
        return refuse_value(row, value, "a number", err);
    memcpy(member, &real, sizeof real);
    return STATUS_OK;
}

// Whether it can stand in a line and in JSON, as all settings do sooner or later.
static bool is_line(const char *value) {
    size_t length = 1;
    for (; *value && *value != '\n' && length; value += length)
        length = utf8_length(value);
    return !*value && length;
}

static int set_key(struct settings *settings, const char *key, const char *value,
                   struct error *err) {
    const struct settings_row *row = settings_find_row(key);
    if (!row)
        return settings_refuse_key(key, err);
    if (!is_line(value))
        return error_set(err, STATUS_USAGE, "%s: needs one line of UTF-8 text", key);
    char *member = (char *)settings + row->offset;
    return row->kind == TEXT    ? set_text(member, row, value, err)
           : row->kind == COUNT ? set_count(member, row, value, err)
                                : set_row_real(member, row, value, err);
}

int settings_choose(struct settings *settings, const char *key, const char *value,
                    struct error *err) {
    const struct settings_row *row = settings_find_row(key);
    if (row && row->use & OWN)
        return error_set(err, STATUS_USAGE, "%s is no choice of yours: the run keeps it itself",
                         key);
    int status = set_key(settings, key, value, err);
    settings_round(settings);
    if (status || !(row->use & SOME) || settings_value(settings, row).count)
        return status;
    struct settings_row some = *row;
    some.low = 1;
    return refuse_value(&some, value, "a whole number", err);
}

// The fewest digits that mean the same number.
static void print_real(FILE *f, double value) {
    char text[32];
    int digits = 6;
    do
        snprintf(text, sizeof text, "%.*g", digits, value);
    while (digits++ < 17 && strtod(text, NULL) != value);
    fputs(text, f);
}

static void print_line(FILE *f, const char *name, const json_t *value) {
    fprintf(f, "%s=", name);
    if (json_is_string(value))
        fputs(json_string_value(value), f);
    else if (json_is_integer(value))
        fprintf(f, "%lld", (long long)json_integer_value(value));
    else
        print_real(f, json_real_value(value));
    fputc('\n', f);
}

char *settings_text(const struct settings *settings) {
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    bool whole = true;
    const struct settings_row *row;
    for (size_t i = 0; f && (row = settings_row(i)); i++) {
        if (row->use & ALONE || !settings_row_given(settings, row))
            continue;
        json_t *value = settings_row_json(settings, row);
        whole = whole && value;
        if (value)
            print_line(f, row->name, value);
        json_decref(value);
    }
    if (f && fclose(f) == 0 && whole)
        return text;
    free(text);
    return NULL;
}

static int parse_line(struct settings *settings, char *line, struct error *err) {
    char *equals = strchr(line, '=');
    if (!equals)
        return error_set(err, STATUS_USAGE, "'%.100s' is not KEY=VALUE", line);
    *equals = 0;
    return set_key(settings, line, equals + 1, err);
}

int settings_parse(struct settings *settings, char *text, struct error *err) {
    struct settings next = *settings;
    int status = STATUS_OK;
    for (char *rest = text, *line; status == STATUS_OK && (line = strsep(&rest, "\n"));)
        if (*line)
            status = parse_line(&next, line, err);
    if (status == STATUS_OK)
        *settings = next;
    return status;
}

int settings_check_text(const char *name, const char *text, struct error *err) {
    if (!text || utf8_is_valid(text))
        return STATUS_OK;
    return error_set(err, STATUS_USAGE, "%s '%s' is not UTF-8: no checkpoint could keep it", name,
                     text);
}
