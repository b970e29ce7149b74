// A table of targets as text, a line a sample.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"
#include "sample/targets_internal.h"

enum { SHOWN = 60 }; // bytes of what a message shows

#define TEXT_MAX ((size_t)1 << 30)
#define LIST_NAME "labels" // of a column that holds names of classes

struct target_reader {
    struct targets *targets;
    struct classes *classes;
    char *rest;    // lines that are to be read
    uint64_t line; // number of the one in hand
    int columns;   // behind the key
    int *places;   // of each column among the classes
    bool lists;    // the one column holds names of classes
    bool known;    // the classes were given
};

static int fault(const struct target_reader *r, struct error *err) {
    return error_context(err, "%s:%" PRIu64, r->targets->name, r->line);
}

// --- text -------------------------------------------------------------------------------------

static int read_whole(struct targets *targets, struct stream *stream, struct error *err) {
    const uint8_t *data;
    size_t size;
    int status = stream_peek(stream, TEXT_MAX + 1, &data, &size, err);
    if (status)
        return status;
    if (size > TEXT_MAX)
        return error_set(err, STATUS_DATA, "%s: more than %zu bytes", targets->name, TEXT_MAX);
    size_t mark = text_mark((const char *)data, size);
    data += mark, size -= mark;
    targets->text = mem_array(size + 1, 1);
    if (!targets->text)
        return error_nomem(err);
    memcpy(targets->text, data, size);
    targets->text[size] = 0;
    if (strlen(targets->text) != size)
        return error_set(err, STATUS_DATA, "%s: binary data, neither TSV nor .npy", targets->name);
    return STATUS_OK;
}

// The next line that is not empty, without its end; NULL behind the last.
static char *next_line(struct target_reader *r) {
    char *line;
    while ((line = strsep(&r->rest, "\n"))) {
        size_t length = strlen(line);
        r->line++;
        if (length > 0 && line[length - 1] == '\r')
            line[--length] = 0;
        if (length > 0)
            return line;
    }
    return NULL;
}

static uint64_t count_lines(const char *text) {
    uint64_t count = 1;
    for (; (text = strchr(text, '\n')); text++)
        count++;
    return count;
}

static int count_columns(const char *line) {
    int count = 0;
    for (; (line = strchr(line, '\t')); line++)
        count++;
    return count;
}

// --- the first line ---------------------------------------------------------------------------

// The place of a column, or of a class: it is one of those known, or a new one.
static int place_name(const struct target_reader *r, const char *name, int *place,
                      struct error *err) {
    *place = classes_find(r->classes, name);
    if (*place >= 0)
        return STATUS_OK;
    return r->known ? classes_unknown(r->classes, r->classes->count,
                                      r->lists ? "labels" : "columns", name, err)
                    : classes_label(r->classes, name, place, err);
}

static int take_column(struct target_reader *r, int column, const char *name, struct error *err) {
    int status = place_name(r, name, &r->places[column], err);
    for (int i = 0; !status && i < column; i++)
        if (r->places[i] == r->places[column])
            status = error_set(err, STATUS_DATA, "two columns are called '%.*s'", SHOWN, name);
    return status;
}

static int take_columns(struct target_reader *r, char *names, struct error *err) {
    char *name;
    r->places = mem_array((size_t)r->columns, sizeof *r->places);
    if (!r->places)
        return error_nomem(err);
    for (int i = 0; (name = strsep(&names, "\t")); i++)
        if (take_column(r, i, name, err))
            return err->status;
    if (r->columns < r->classes->count)
        return error_set(err, STATUS_DATA, "%d columns, where there are %d outputs", r->columns,
                         r->classes->count);
    return STATUS_OK;
}

static int read_head(struct target_reader *r, struct error *err) {
    char *names = next_line(r);
    if (!names)
        return error_set(err, STATUS_DATA, "%s: is empty", r->targets->name);
    r->columns = count_columns(names);
    strsep(&names, "\t"); // what keys are called
    if (r->columns == 0)
        error_set(err, STATUS_DATA,
                  "the first line names columns with tabs between: one of keys, then those of "
                  "targets");
    else if (r->columns > TARGETS_MAX)
        error_set(err, STATUS_DATA, "more than %d columns", TARGETS_MAX);
    else if (r->columns == 1 && !strcmp(names, LIST_NAME))
        r->lists = true;
    else
        take_columns(r, names, err);
    return err->status ? fault(r, err) : STATUS_OK;
}

// --- keys -------------------------------------------------------------------------------------

// A key may be the path of a picture, with what sources leave out of theirs: "./" or "/" in front,
// and the extension.
static char *bare_key(char *key) {
    while (*key == '/' || (key[0] == '.' && key[1] == '/'))
        key += *key == '/' ? 1 : 2;
    char *dot = strrchr(key, '.');
    if (dot && dot > key && dot[-1] != '/' && codec_of_extension(dot + 1) != CODEC_NONE)
        *dot = 0;
    return key;
}

// Cuts the key from the line; what is behind it stays in *values.
static int take_key(struct target_reader *r, char *line, char **values, struct error *err) {
    int columns = count_columns(line);
    if (columns != r->columns)
        return error_set(err, STATUS_DATA, "%d columns, where the first line has %d", columns + 1,
                         r->columns + 1);
    struct target_key *key = &r->targets->keys[r->targets->rows];
    *values = line;
    strsep(values, "\t");
    *key = (struct target_key){bare_key(line), (uint32_t)r->targets->rows, r->line};
    r->targets->rows++;
    return STATUS_OK;
}

static int compare_keys(const void *a, const void *b) {
    const struct target_key *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    return order ? order : x->line < y->line ? -1 : 1;
}

static int sort_keys(struct targets *targets, struct error *err) {
    struct target_key *keys = targets->keys;
    qsort(keys, targets->rows, sizeof *keys, compare_keys);
    for (uint64_t i = 1; i < targets->rows; i++)
        if (!strcmp(keys[i - 1].key, keys[i].key))
            return error_set(err, STATUS_DATA,
                             "%s:%" PRIu64 ": key '%.*s' stands in line %" PRIu64 " already",
                             targets->name, keys[i].line, SHOWN, keys[i].key, keys[i - 1].line);
    return STATUS_OK;
}

// --- rows -------------------------------------------------------------------------------------

static int take_number(const struct target_reader *r, float *row, int column, const char *text,
                       struct error *err) {
    double number;
    bool good = text_real(text, strlen(text), &number) && number <= 3e38 && number >= -3e38;
    if (!good)
        return error_set(err, STATUS_DATA,
                         "'%.*s' of column '%s' is no finite number; names of classes stand in a "
                         "column called '" LIST_NAME "'",
                         SHOWN, text, r->classes->names[r->places[column]]);
    row[r->places[column]] = (float)number;
    return STATUS_OK;
}

static int take_numbers(const struct target_reader *r, float *row, char *values,
                        struct error *err) {
    char *text;
    for (int i = 0; (text = strsep(&values, "\t")); i++)
        if (take_number(r, row, i, text, err))
            return err->status;
    return STATUS_OK;
}

// `row` NULL: only finds which classes there are. Leaves the text as it is.
static int take_names(const struct target_reader *r, float *row, char *values, struct error *err) {
    int place, status = STATUS_OK;
    for (char *name = *values ? values : NULL, *end; !status && name; name = end ? end + 1 : NULL) {
        if ((end = strchr(name, ',')))
            *end = 0;
        status = place_name(r, name, &place, err);
        if (!status && row && row[place] > 0)
            status = error_set(err, STATUS_DATA, "class '%.*s' is there twice", SHOWN, name);
        if (!status && row)
            row[place] = 1;
        if (end)
            *end = ',';
    }
    return status;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Classes are numbered in the order of their names, wherever these came first.
static int sort_names(struct classes *classes, struct error *err) {
    struct classes sorted = {0};
    int label, status = STATUS_OK;
    if (classes->count > 1)
        qsort(classes->names, (size_t)classes->count, sizeof *classes->names, compare_names);
    for (int i = 0; !status && i < classes->count; i++)
        status = classes_label(&sorted, classes->names[i], &label, err);
    classes_free(classes);
    *classes = sorted;
    return status;
}

static int learn_names(struct target_reader *r, char **values, struct error *err) {
    for (uint64_t i = 0; i < r->targets->rows; i++) {
        r->line = r->targets->keys[i].line;
        if (take_names(r, NULL, values[i], err))
            return fault(r, err);
    }
    return sort_names(r->classes, err);
}

static int fill_rows(struct target_reader *r, char **values, struct error *err) {
    struct targets *targets = r->targets;
    for (uint64_t i = 0; i < targets->rows; i++) {
        float *row = targets->values + i * (uint64_t)targets->width;
        memset(row, 0, (size_t)targets->width * sizeof *row);
        r->line = targets->keys[i].line;
        if (r->lists ? take_names(r, row, values[i], err) : take_numbers(r, row, values[i], err))
            return fault(r, err);
    }
    return STATUS_OK;
}

static int read_rows(struct target_reader *r, char **values, struct error *err) {
    struct targets *targets = r->targets;
    int status = STATUS_OK;
    for (char *line; !status && (line = next_line(r));)
        if (take_key(r, line, &values[targets->rows], err))
            status = fault(r, err);
    if (!status && r->lists && !r->known)
        status = learn_names(r, values, err);
    if (!status && r->classes->count == 0)
        status = error_set(err, STATUS_DATA, "%s: names no class", targets->name);
    if (!status)
        status = targets_make(targets, targets->rows, (uint64_t)r->classes->count, err);
    if (!status)
        status = fill_rows(r, values, err);
    return status ? status : sort_keys(targets, err);
}

static int read_lines(struct target_reader *r, struct error *err) {
    uint64_t lines = count_lines(r->rest);
    char **values = mem_array(lines, sizeof *values);
    r->targets->keys = mem_array(lines, sizeof *r->targets->keys);
    int status = values && r->targets->keys ? read_head(r, err) : error_nomem(err);
    if (!status)
        status = read_rows(r, values, err);
    free(values);
    free(r->places);
    return status;
}

int targets_read_text(struct targets *targets, struct stream *stream, struct classes *classes,
                      struct error *err) {
    struct error unwanted = {0};
    err = err ? err : &unwanted;
    int status = read_whole(targets, stream, err);
    struct target_reader r = {
        .targets = targets, .classes = classes, .rest = targets->text, .known = classes->count > 0};
    return status ? status : read_lines(&r, err);
}
