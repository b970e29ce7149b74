#include "prep/stat_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "core/printable.h"
#include "sample/sink.h"

enum { NAME = 1024 }; // bytes of a class's name: longer ones are cut

// ---- text ----

static void put_count_line(FILE *to, const char *name, uint64_t count) {
    fprintf(to, "%-10s %llu\n", name, (unsigned long long)count);
}

static void put_range(FILE *to, const char *name, const int range[2]) {
    if (range[0] == range[1])
        fprintf(to, "%-10s %d\n", name, range[0]);
    else
        fprintf(to, "%-10s %d to %d\n", name, range[0], range[1]);
}

static void put_reals(FILE *to, const char *name, const double *values, int count) {
    fprintf(to, "%-10s", name);
    for (int i = 0; i < count; i++)
        fprintf(to, " %.4f", values[i]);
    putc('\n', to);
}

static void put_not_finite(FILE *to, const struct statistics *st) {
    char name[NAME];
    printable_copy(name, sizeof name, st->first_not_finite, strlen(st->first_not_finite));
    fprintf(to, "%-10s %llu, left out of mean and deviation; the first is %s\n", "not finite",
            (unsigned long long)st->not_finite, name);
}

static void put_table(FILE *to, const struct statistics *st, const char *ops) {
    fprintf(to, "%-10s %s\n", "kind", st->kind);
    put_count_line(to, "samples", st->samples);
    put_count_line(to, "bytes", st->bytes);
    if (st->unlabelled)
        put_count_line(to, "unlabelled", st->unlabelled);
    if (st->damaged)
        put_count_line(to, "damaged", st->damaged);
    if (st->not_finite)
        put_not_finite(to, st);
    put_range(to, "channels", st->channels);
    put_range(to, "height", st->height);
    put_range(to, "width", st->width);
    if (st->moments) {
        put_reals(to, "mean", st->mean, st->moments);
        put_reals(to, "deviation", st->deviation, st->moments);
        fprintf(to, "%-10s %s\n", "ops", ops);
    }
    put_count_line(to, "classes", (uint64_t)st->classes.count);
    for (int i = 0; i < st->classes.count; i++) {
        const char *class = st->classes.names[i];
        char name[NAME];
        printable_copy(name, sizeof name, class, strlen(class));
        fprintf(to, "%10d %10llu  %s\n", i, (unsigned long long)st->counts[i], name);
    }
}

int stat_table_text(char **text, const struct statistics *statistics, const char *picture,
                    struct error *err) {
    size_t size;
    char *ops = statistics_ops(statistics, picture);
    *text = NULL;
    FILE *to = ops || !statistics->moments ? open_memstream(text, &size) : NULL;
    if (to)
        put_table(to, statistics, ops);
    free(ops);
    if (to && !fclose(to))
        return STATUS_OK;
    free(*text);
    return error_nomem(err);
}

// ---- JSON ----

static json_t *json_range(const int range[2]) {
    return json_pack("{s:i, s:i}", "min", range[0], "max", range[1]);
}

static json_t *json_reals(const double *values, int count) {
    json_t *array = json_array();
    for (int i = 0; i < count; i++)
        json_append(&array, json_real(values[i]));
    return array;
}

static json_t *json_classes(const struct statistics *st) {
    json_t *array = json_array();
    for (int i = 0; i < st->classes.count; i++)
        json_append(&array, json_pack("{s:i, s:s, s:I}", "label", i, "name", st->classes.names[i],
                                      "samples", (json_int_t)st->counts[i]));
    return array;
}

int stat_table_json(char **text, const struct statistics *st, const char *picture,
                    struct error *err) {
    char *ops = statistics_ops(st, picture);
    json_t *value = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:s?, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:s?}", "kind",
        st->kind, "samples", (json_int_t)st->samples, "unlabelled", (json_int_t)st->unlabelled,
        "damaged", (json_int_t)st->damaged, "not_finite", (json_int_t)st->not_finite,
        "first_not_finite", st->first_not_finite, "bytes", (json_int_t)st->bytes, "width",
        json_range(st->width), "height", json_range(st->height), "channels",
        json_range(st->channels), "mean", json_reals(st->mean, st->moments), "deviation",
        json_reals(st->deviation, st->moments), "classes", json_classes(st), "ops", ops);
    char *line = value ? json_line(value) : NULL;
    json_decref(value);
    free(ops);
    if (!line)
        return error_set(err, STATUS_DATA, "a class name is not UTF-8, so JSON cannot hold it");
    int length = asprintf(text, "%s\n", line);
    free(line);
    return length < 0 ? error_nomem(err) : STATUS_OK;
}

// ---- the mean of each pixel ----

int stat_table_mean(const char *path, const struct statistics *statistics, bool force,
                    struct error *err) {
    const struct sink_options options = {.to = "npy", .force = force};
    const struct classes none = {0};
    const struct sample sample = {
        .key = (char *)"mean", .label = LABEL_NONE, .image = statistics->picture};
    struct sink *sink;
    int status = sink_open(&sink, path, &options, &none, err);
    if (status)
        return status;
    status = sink_put(sink, &sample, err);
    if (!status)
        return sink_close(sink, err);
    sink_abort(sink);
    return status;
}
