#include "report/compare.h"

#include <math.h>
#include <string.h>

#include "core/columns.h"

// --- what is told of a run ----------------------------------------------------------------

static double parameters_of(const struct history *run) {
    const json_t *value = json_object_get(history_start(run), "parameters");
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static double epoch_of(const struct history *run) {
    return run->epoch;
}

static double seconds_of(const struct history *run) {
    return run->seconds;
}

// Over all of its time, tests and checkpoints too.
static double speed_of(const struct history *run) {
    return run->seconds > 0 ? run->samples / run->seconds : NAN;
}

static double loss_of(const struct history *run) {
    return curve_least(&run->curves[CURVE_TEST_LOSS], NULL);
}

static double top1_of(const struct history *run) {
    return curve_best(&run->curves[CURVE_TOP1], NULL);
}

static double map_of(const struct history *run) {
    return curve_best(&run->curves[CURVE_MAP], NULL);
}

static double r2_of(const struct history *run) {
    return curve_best(&run->curves[CURVE_R2], NULL);
}

// The epoch of the highest accuracy, or what a run of targets has in its place.
static double best_of(const struct history *run) {
    static const enum curve_of accuracies[] = {CURVE_TOP1, CURVE_MAP, CURVE_R2};
    for (size_t i = 0; i < sizeof accuracies / sizeof *accuracies; i++) {
        const struct curve *curve = &run->curves[accuracies[i]];
        size_t at = 0;
        if (!isnan(curve_best(curve, &at)))
            return curve->epoch[at];
    }
    return NAN;
}

const char *const compare_keys[] = {"parameters", "epoch", "seconds", "images/s", "loss",
                                    "top1",       "map",   "r2",      "at",       NULL};
enum { FIGURES = sizeof compare_keys / sizeof *compare_keys - 1 };

static const struct figure {
    const char *key; // of JSON
    int decimals;
    bool more;    // is better
    bool unusual; // shown only where a run has it
    double (*of)(const struct history *run);
} figures[FIGURES] = {
    {"parameters", 0, false, false, parameters_of},
    {"epoch", 2, false, false, epoch_of},
    {"seconds", 1, false, false, seconds_of},
    {"images_per_s", 0, true, false, speed_of},
    {"loss", 4, false, false, loss_of},
    {"top1", 4, true, false, top1_of},
    {"map", 4, true, true, map_of},
    {"r2", 4, true, true, r2_of},
    {"best_epoch", 2, false, false, best_of},
};

static const char *end_text(const struct history *run) {
    static const char *const ends[] = {
        [HISTORY_RUNNING] = "not ended",
        [HISTORY_DONE] = "done",
        [HISTORY_STOPPED] = "stopped",
        [HISTORY_DIVERGED] = "diverged",
    };
    return ends[run->end];
}

static const char *model_of(const struct history *run) {
    const char *name = json_string_value(json_object_get(history_start(run), "model"));
    const char *slash = name ? strrchr(name, '/') : NULL;
    return slash ? slash + 1 : name;
}

// --- order --------------------------------------------------------------------------------

static bool is_before(const struct figure *figure, const struct history *a,
                      const struct history *b) {
    double x = figure->of(a), y = figure->of(b);
    if (isnan(x) || isnan(y))
        return !isnan(x) && isnan(y);
    return figure->more ? x > y : x < y;
}

static void swap_runs(struct history *a, struct history *b) {
    const struct history kept = *a;
    *a = *b;
    *b = kept;
}

void compare_sort(struct history *runs, size_t count, const char *key) {
    size_t f = 0;
    while (f < FIGURES && key && strcmp(compare_keys[f], key) != 0)
        f++;
    if (!key || f == FIGURES)
        return;
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j > 0 && is_before(&figures[f], &runs[j], &runs[j - 1]); j--)
            swap_runs(&runs[j], &runs[j - 1]);
}

// --- as text ------------------------------------------------------------------------------

static bool is_shown(const struct figure *figure, const struct history *runs, size_t count) {
    bool had = !figure->unusual;
    for (size_t i = 0; i < count; i++)
        had = had || !isnan(figure->of(&runs[i]));
    return had;
}

static void put_figure(struct columns *table, const struct figure *figure,
                       const struct history *run) {
    double value = figure->of(run);
    if (isnan(value))
        columns_cell(table, "-");
    else
        columns_cell(table, "%.*f", figure->decimals, value);
}

char *compare_text(const struct history *runs, size_t count) {
    struct column columns[3 + FIGURES] = {{"run", false}, {"model", false}, {"end", false}};
    const struct figure *shown[FIGURES];
    struct columns table = {.column = columns, .count = 3};
    struct grow to = {0};
    for (size_t f = 0; f < FIGURES; f++)
        if (is_shown(&figures[f], runs, count)) {
            shown[table.count - 3] = &figures[f];
            columns[table.count++] = (struct column){compare_keys[f], true};
        }
    for (size_t i = 0; i < count; i++) {
        const char *model = model_of(&runs[i]);
        columns_cell(&table, "%s", runs[i].name);
        columns_cell(&table, "%s", model ? model : "-");
        columns_cell(&table, "%s", end_text(&runs[i]));
        for (int f = 0; f < table.count - 3; f++)
            put_figure(&table, shown[f], &runs[i]);
    }
    columns_put(&table, &to);
    return grow_take(&to);
}

// --- as JSON ------------------------------------------------------------------------------

static json_t *figure_json(const struct figure *figure, const struct history *run) {
    double value = figure->of(run);
    if (!isfinite(value))
        return json_null();
    return figure->decimals ? json_real(value) : json_integer((json_int_t)llround(value));
}

static json_t *run_json(const struct history *run) {
    const char *model = model_of(run);
    json_t *object = json_object();
    json_put(&object, "run", json_text(run->name));
    json_put(&object, "model", model ? json_text(model) : json_null());
    json_put(&object, "end", json_text(end_text(run)));
    for (size_t f = 0; f < FIGURES; f++)
        json_put(&object, figures[f].key, figure_json(&figures[f], run));
    return object;
}

json_t *compare_json(const struct history *runs, size_t count) {
    json_t *list = json_array(), *object = json_object();
    for (size_t i = 0; i < count; i++)
        json_append(&list, run_json(&runs[i]));
    json_put(&object, "runs", list);
    return object;
}
