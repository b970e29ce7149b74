#include "run/run_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/io.h"
#include "core/mem.h"

enum {
    LINE_MOST = 65536, // bytes of one line
    LINES_MOST = 65536,
};

#define BLANKS " \t\r\n\f\v"

// A word of a line.
struct text_range {
    const char *at;
    size_t length;
};

struct run_file_reader {
    struct run_file *file;
    const char *path;
    int folder; // length of the path's folder with its slash
    const char *line;
    int number;
    struct seen_key { // keys so far
        char *key;
        int number;
    } * seen;
    size_t seen_count;
};

// --- texts ------------------------------------------------------------------------------

// Keeps an allocated text until the file is freed; takes it over. NULL when out of memory.
static char *keep_text(struct run_file *file, char *text) {
    char **more = text ? mem_resize(file->texts, file->text_count + 1, sizeof *more) : NULL;
    if (!more) {
        free(text);
        return NULL;
    }
    file->texts = more;
    return file->texts[file->text_count++] = text;
}

static int add_set(struct run_file *file, const char *key, const char *value, struct error *err) {
    char *text = NULL;
    if (asprintf(&text, "%s=%s", key, value) < 0)
        text = NULL;
    const char **more = mem_resize(file->sets, file->set_count + 1, sizeof *more);
    if (more)
        file->sets = more;
    if (!keep_text(file, text) || !more)
        return error_nomem(err);
    file->sets[file->set_count++] = text;
    return STATUS_OK;
}

// --- one line -----------------------------------------------------------------------------

// Turns what err says into a message with place, line and caret. STATUS_DATA.
static int point_at_word(const struct run_file_reader *r, struct text_range word,
                         struct error *err) {
    struct error why = *err;
    int shown = (int)strcspn(r->line, "\r\n"), column = (int)(word.at - r->line);
    char waves[64];
    size_t n = word.length < sizeof waves ? word.length : sizeof waves;
    memset(waves, '~', sizeof waves);
    return error_set(err, why.status == STATUS_USAGE ? STATUS_DATA : why.status,
                     "%s:%d:%d: error: %s\n%5d | %.*s\n      | %*s^%.*s", r->path, r->number,
                     column + 1, why.text, r->number, shown < 200 ? shown : 200, r->line, column,
                     "", n > 1 ? (int)n - 1 : 0, waves);
}

static struct text_range trim_blanks(const char *from, const char *end) {
    while (from < end && strchr(BLANKS, *from))
        from++;
    while (end > from && strchr(BLANKS, end[-1]))
        end--;
    return (struct text_range){from, (size_t)(end - from)};
}

// Where the line ends for us: at its comment, if it has one.
static const char *end_of(const char *line) {
    const char *p = line;
    while (*p && !(*p == '#' && (p == line || strchr(BLANKS, p[-1]))))
        p++;
    return p;
}

// The value as the settings want it: a relative path begins where the file is.
static char *setting_value(const struct run_file_reader *r, const char *key,
                           struct text_range word) {
    char *text = NULL;
    bool relative = word.length && *word.at != '/' && settings_path(key, word.at, word.length);
    int n =
        asprintf(&text, "%.*s%.*s", relative ? r->folder : 0, r->path, (int)word.length, word.at);
    return n < 0 ? NULL : text;
}

static int note_key(struct run_file_reader *r, const char *key, struct error *err) {
    for (size_t i = 0; i < r->seen_count; i++)
        if (!strcmp(r->seen[i].key, key))
            return error_set(err, STATUS_USAGE, "'%s' is set in line %d already", key,
                             r->seen[i].number);
    struct seen_key *more = mem_resize(r->seen, r->seen_count + 1, sizeof *more);
    if (!more)
        return error_nomem(err);
    r->seen = more;
    r->seen[r->seen_count].number = r->number;
    r->seen[r->seen_count].key = mem_string(key);
    return r->seen[r->seen_count].key ? (r->seen_count++, STATUS_OK) : error_nomem(err);
}

static int set_key(struct run_file *file, const char *key, const char *value, struct error *err) {
    return strchr(key, '.') ? add_set(file, key, value, err)
                            : settings_choose(&file->settings, key, value, err);
}

static int take_pair(struct run_file_reader *r, struct text_range key, struct text_range value,
                     struct error *err) {
    if (key.length == 0) {
        error_set(err, STATUS_USAGE, "a key is missing before '='");
        return point_at_word(r, (struct text_range){value.at, 1}, err);
    }
    const char *name = keep_text(r->file, mem_text(key.at, key.length));
    if (!name)
        return error_nomem(err);
    int status = note_key(r, name, err);
    if (status)
        return point_at_word(r, key, err);
    char *text = keep_text(r->file, setting_value(r, name, value));
    if (!text)
        return error_nomem(err);
    if (!value.length)
        error_set(err, STATUS_USAGE, "'%s' needs a value", name);
    else if (!set_key(r->file, name, text, err))
        return STATUS_OK;
    bool known = strchr(name, '.') || settings_known(name);
    return point_at_word(r, known && value.length ? value : key, err);
}

static int read_setting_line(struct run_file_reader *r, struct error *err) {
    const char *end = end_of(r->line);
    struct text_range all = trim_blanks(r->line, end);
    const char *equals = memchr(r->line, '=', (size_t)(end - r->line));
    if (!all.length)
        return STATUS_OK;
    if (equals)
        return take_pair(r, trim_blanks(r->line, equals), trim_blanks(equals + 1, end), err);
    error_set(err, STATUS_USAGE, "expected KEY = VALUE");
    return point_at_word(r, all, err);
}

// --- the file -----------------------------------------------------------------------------

static int take_lines(struct run_file_reader *r, FILE *f, struct error *err) {
    char *line = NULL;
    size_t room = 0;
    ssize_t length = 0;
    int status = io_line(f, r->path, &line, &room, &length, err);
    while (!status && length >= 0) {
        r->line = line;
        r->number++;
        if (length > LINE_MOST || r->number > LINES_MOST || memchr(line, 0, (size_t)length))
            status = error_set(err, STATUS_DATA, "%s:%d: not the file of a run (adam-run(5))",
                               r->path, r->number);
        else
            status = read_setting_line(r, err);
        if (!status)
            status = io_line(f, r->path, &line, &room, &length, err);
    }
    free(line);
    return status;
}

int run_file_read(struct run_file *file, const char *path, struct error *err) {
    const char *slash = strrchr(path, '/');
    struct run_file_reader r = {
        .file = file, .path = path, .folder = slash ? (int)(slash - path) + 1 : 0};
    *file = (struct run_file){0};
    settings_default(&file->settings);
    FILE *f = fopen(path, "re");
    if (!f)
        return error_errno(err, STATUS_NOINPUT, "%s", path);
    int status = take_lines(&r, f, err);
    fclose(f);
    for (size_t i = 0; i < r.seen_count; i++)
        free(r.seen[i].key);
    free(r.seen);
    if (status)
        run_file_free(file);
    return status;
}

// Also into the settings that are given so.
static int set_assignment(struct run_file *file, struct settings *given, const char *assignment,
                          struct error *err) {
    char *text = keep_text(file, mem_string(assignment));
    if (!text)
        return error_nomem(err);
    char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return error_set(err, STATUS_USAGE, "--set %s: is not KEY=VALUE", assignment);
    *equals = 0;
    int status = set_key(file, text, equals + 1, err);
    if (!status && !strchr(text, '.'))
        status = settings_choose(given, text, equals + 1, err);
    if (status)
        error_context(err, "--set");
    return status;
}

int run_file_set(struct run_file *file, const char *const *assignments, size_t count,
                 struct error *err) {
    const struct settings before = file->settings;
    struct settings given;
    int status = STATUS_OK;
    settings_default(&given);
    for (size_t i = 0; !status && i < count; i++)
        status = set_assignment(file, &given, assignments[i], err);
    given.data = given.test = NULL; // labels and targets may be of another file, too
    if (!status)
        settings_fit(&file->settings, &before, &given);
    return status;
}

void run_file_free(struct run_file *file) {
    for (size_t i = 0; i < file->text_count; i++)
        free(file->texts[i]);
    free(file->texts);
    free(file->sets);
    *file = (struct run_file){0};
}
