#include "model/script.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/utf8.h"

enum { EXCERPT_BEFORE = 60, EXCERPT_WIDTH = 100 }; // bytes of a long line that are shown

struct position {
    int line, column;  // from 1
    const char *start; // of the line
    const char *end;   // behind its last character
};

static struct position position_of(const struct script *script, const char *at) {
    struct position position = {.line = 1, .start = script->text};
    for (const char *p = script->text; p < at; p++)
        if (*p == '\n') {
            position.line++;
            position.start = p + 1;
        }
    position.column = (int)(at - position.start) + 1;
    position.end = position.start + strcspn(position.start, "\n");
    return position;
}

static bool continues_character(char c) { // the second and later bytes of one in UTF-8
    return ((unsigned char)c & 0xC0) == 0x80;
}

static bool is_control(char c) {
    return ((unsigned char)c < 0x20 && c != '\t' && c != '\n') || c == 0x7f;
}

// The line as a terminal may show it, and below it blanks up to the caret. Tabs
// stay tabs in both, so that the caret stands below its character.
static void excerpt(char *text, size_t size, const struct position *position, const char *at,
                    size_t length) {
    const char *from = position->start, *to = position->end;
    if (at - from > EXCERPT_WIDTH - EXCERPT_BEFORE / 2)
        from = at - EXCERPT_BEFORE;
    if (to - from > EXCERPT_WIDTH)
        to = from + EXCERPT_WIDTH;
    while (from < at && continues_character(*from))
        from++;
    while (to > at && continues_character(*to))
        to--;
    char shown[EXCERPT_WIDTH + 1] = "", marks[2 * EXCERPT_WIDTH + 1] = "";
    size_t n = 0, m = 0;
    for (const char *p = from; p < to; p++) {
        shown[n++] = is_control(*p) ? '?' : *p;
        if (p < at && !continues_character(*p))
            marks[m++] = *p == '\t' ? '\t' : ' ';
    }
    marks[m++] = '^';
    for (const char *p = at + 1; p < at + length && p < to; p++)
        if (!continues_character(*p))
            marks[m++] = '~';
    snprintf(text, size, "\n%5d | %s\n      | %s", position->line, shown, marks);
}

// The override that wrote the word around `at`, or NULL.
static const char *set_at(const struct script *script, const char *at) {
    for (int i = 0; i < script->count; i++)
        for (int j = 0; j < script->statements[i].count; j++) {
            const struct word *word = &script->statements[i].words[j];
            if (at >= word->start && at <= word->start + word->length)
                return word->set;
        }
    return NULL;
}

int script_error(const struct script *script, const char *at, size_t length, struct error *err,
                 const char *format, ...) {
    char message[ERROR_TEXT / 2], lines[4 * EXCERPT_WIDTH];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const char *set = set_at(script, at);
    if (set)
        return error_set(err, STATUS_USAGE, "--set %.200s: %s", set, message);
    struct position position = position_of(script, at);
    excerpt(lines, sizeof lines, &position, at, length);
    return error_set(err, STATUS_DATA, "%s:%d:%d: error: %s%s", script->name, position.line,
                     position.column, message, lines);
}

// A copy without byte-order mark and carriage returns at line ends.
static char *plain_copy(const char *text, size_t length) {
    char *copy = mem_array(length + 1, 1);
    if (!copy)
        return NULL;
    size_t n = 0;
    for (size_t i = strncmp(text, "\xEF\xBB\xBF", 3) ? 0 : 3; i < length; i++)
        if (text[i] != '\r' || text[i + 1] != '\n')
            copy[n++] = text[i];
    copy[n] = 0;
    return copy;
}

// Only text goes into messages and into the JSON of a checkpoint.
static int check_text(const struct script *script, struct error *err) {
    for (const char *p = script->text; *p; p += utf8_length(p)) {
        if (is_control(*p))
            return script_error(script, p, 1, err, "control character 0x%02x", (unsigned)*p);
        if (utf8_length(p) == 0)
            return script_error(script, p, 1, err, "not UTF-8 text");
    }
    return STATUS_OK;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

// Whether a word that is not in quotes ends here.
static bool ends_word(char c) {
    return !c || c == '\n' || c == '#' || is_blank(c);
}

static bool is_quote(char c) {
    return c == '\'' || c == '"';
}

// The value between quotes; *end: behind the closing one.
static int read_quoted(const struct script *script, struct word *word, const char *open,
                       const char **end, struct error *err) {
    const char *close = open + 1;
    while (*close && *close != '\n' && *close != *open)
        close++;
    if (*close != *open)
        return script_error(script, open, 1, err, "no closing quote %c on this line", *open);
    if (!ends_word(close[1]))
        return script_error(script, close + 1, 1, err, "a blank must follow the closing quote");
    word->value = open + 1;
    word->value_length = (size_t)(close - open - 1);
    *end = close + 1;
    return STATUS_OK;
}

// Up to the next blank; a key's value may hold '='.
static int read_plain(const struct script *script, struct word *word, const char *start,
                      const char **end, struct error *err) {
    const char *p = start;
    for (; !ends_word(*p) && (word->key || *p != '='); p++)
        if (is_quote(*p))
            return script_error(script, p, 1, err, "a quote may only stand behind 'key='");
    word->value = start;
    word->value_length = (size_t)(p - start);
    *end = p;
    return STATUS_OK;
}

static int read_word(const struct script *script, struct word *word, const char **text,
                     struct error *err) {
    const char *p = *text;
    *word = (struct word){.start = p, .bare = true};
    int status = read_plain(script, word, p, &p, err);
    if (status == STATUS_OK && *p == '=') {
        if (p == word->start)
            return script_error(script, p, 1, err,
                                "no key before '='; keys are written key=value, without blanks");
        word->bare = false;
        word->key = word->value;
        word->key_length = word->value_length;
        p++;
        status = is_quote(*p) ? read_quoted(script, word, p, &p, err)
                              : read_plain(script, word, p, &p, err);
        if (status == STATUS_OK && word->value_length == 0 && !is_quote(p[-1]))
            status = script_error(script, word->start, (size_t)(p - word->start), err,
                                  "'%.*s' has no value", SHOWN(word->key_length), word->key);
    }
    word->length = (size_t)(p - word->start);
    *text = p;
    return status;
}

// The array with room for one more element, which doubles it when it is full;
// NULL when out of memory.
static void *with_room(void *array, int count, size_t size) {
    bool full = (count & (count - 1)) == 0; // at 0 and the powers of two
    return full ? mem_resize(array, count ? 2 * (size_t)count : 1, size) : array;
}

static struct statement *add_statement(struct script *script, int line) {
    struct statement *all = with_room(script->statements, script->count, sizeof *all);
    if (!all)
        return NULL;
    script->statements = all;
    struct statement *statement = &script->statements[script->count++];
    *statement = (struct statement){.line = line};
    return statement;
}

static int add_word(struct statement *statement, const struct word *word, struct error *err) {
    struct word *all = with_room(statement->words, statement->count, sizeof *all);
    if (!all)
        return error_nomem(err);
    statement->words = all;
    statement->words[statement->count++] = *word;
    return STATUS_OK;
}

static int read_line(struct script *script, int line, const char **text, struct error *err) {
    struct statement *statement = NULL;
    for (const char *p = *text;;) {
        while (is_blank(*p))
            p++;
        if (ends_word(*p)) {
            *text = p + strcspn(p, "\n");
            return STATUS_OK;
        }
        if (script->count == SCRIPT_LAYERS_MAX && !statement)
            return script_error(script, p, 1, err, "more than %d layers", SCRIPT_LAYERS_MAX);
        if (!statement && !(statement = add_statement(script, line)))
            return error_nomem(err);
        struct word word;
        int status = read_word(script, &word, &p, err);
        if (status == STATUS_OK)
            status = add_word(statement, &word, err);
        if (status != STATUS_OK)
            return status;
    }
}

static int read_lines(struct script *script, struct error *err) {
    int line = 1;
    for (const char *p = script->text;; p++, line++) {
        int status = read_line(script, line, &p, err);
        if (status != STATUS_OK || !*p)
            return status;
    }
}

int script_open(struct script *script, const char *name, const char *text, struct error *err) {
    *script = (struct script){.name = name};
    size_t length = strnlen(text, MODEL_TEXT_MAX + 1);
    if (length > MODEL_TEXT_MAX)
        return error_set(err, STATUS_DATA, "%s: larger than %d bytes: not a model file", name,
                         MODEL_TEXT_MAX);
    script->text = plain_copy(text, length);
    if (!script->text)
        return error_nomem(err);
    int status = check_text(script, err);
    if (status == STATUS_OK)
        status = read_lines(script, err);
    if (status != STATUS_OK)
        script_close(script);
    return status;
}

void script_close(struct script *script) {
    for (int i = 0; i < script->count; i++)
        free(script->statements[i].words);
    free(script->statements);
    free(script->by_name);
    free(script->text);
    *script = (struct script){0};
}

struct word *script_word(const struct statement *statement, const char *key, size_t length) {
    for (int i = 1; i < statement->count; i++) {
        struct word *word = &statement->words[i];
        if (word->key && word->key_length == length && memcmp(word->key, key, length) == 0)
            return word;
    }
    return NULL;
}
