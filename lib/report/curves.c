#include "report/curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"
#include "report/chart.h"

enum {
    WIDTH_ONE = 800,
    WIDTH_BOTH = 1000,
    PANEL_HEIGHT = 230,
    RATE_HEIGHT = 170,
    EDGE = 12,
    LINE = 22,      // of the legend
    LOG_RATIO = 15, // a range this wide is drawn on a log scale
    CHARACTER = 7,  // width of a letter of the legend, about
};

struct figure {
    const struct history *runs;
    size_t count;
    const struct curves_options *options;
    struct svg svg;
    double width;
    bool by_time;                // the column that is drawn
    struct chart_series *series; // two a run, and one a learner
    double **percent;            // top-1 of each run in percent
};

static const double *curve_x(const struct figure *f, const struct curve *curve) {
    return f->by_time ? curve->time : curve->epoch;
}

// How far any run went.
static double figure_end(const struct figure *f) {
    double end = 0;
    for (size_t i = 0; i < f->count; i++)
        end = fmax(end, f->by_time ? f->runs[i].seconds : f->runs[i].epoch);
    return end;
}

static struct chart_series series_of(const struct figure *f, size_t run, enum curve_of which) {
    const struct curve *curve = &f->runs[run].curves[which];
    bool many = f->count > CHART_COLOURS;
    return (struct chart_series){
        .x = curve_x(f, curve),
        .y = curve->value,
        .n = curve->n,
        .colour = chart_colour(run),
        .dash = many && run / CHART_COLOURS % 2 ? "6 4" : NULL,
        .dots = which == CURVE_TEST_LOSS || which == CURVE_TOP1,
        .label = true,
        .run = run,
    };
}

// --- what the y axes cover ------------------------------------------------------

static double best_accuracy(const struct figure *f) {
    double best = 0;
    for (size_t i = 0; i < f->count; i++)
        best = fmax(best, curve_best(&f->runs[i].curves[CURVE_TOP1], NULL)); // NAN is none
    return best;
}

// A run that diverged, whose loss rose, or that never reached half of the best accuracy.
static bool has_failed(const struct figure *f, size_t run, double best) {
    const struct history *history = &f->runs[run];
    const struct curve *loss = &history->curves[CURVE_LOSS];
    return history->end == HISTORY_DIVERGED || (loss->n > 2 && curve_last(loss) > loss->value[0]) ||
           curve_best(&history->curves[CURVE_TOP1], NULL) < best / 2;
}

static void extend_range(const struct chart_series *series, double *low, double *high) {
    for (size_t i = 0; i < series->n; i++)
        if (isfinite(series->y[i])) {
            *low = fmin(*low, series->y[i]);
            *high = fmax(*high, series->y[i]);
        }
}

// What the user asked for; else, where some runs failed, what the others cover.
static void set_axis_range(const struct figure *f, struct chart *chart, enum curves_axis axis) {
    double low = INFINITY, high = -INFINITY, best = best_accuracy(f);
    bool failed = false;
    if (f->options->range[axis].low < f->options->range[axis].high) {
        chart->y_low = f->options->range[axis].low, chart->y_high = f->options->range[axis].high;
        return;
    }
    for (size_t s = 0; s < chart->count; s++)
        if (has_failed(f, chart->series[s].run, best))
            failed = true;
        else
            extend_range(&chart->series[s], &low, &high);
    if (chart->y_zero)
        low = fmin(low, 0);
    if (failed && low < high)
        chart->y_low = low, chart->y_high = high;
}

const char *curves_axis(size_t index) {
    static const char *const names[CURVES_AXES] = {"loss", "accuracy", "rate", "staleness"};
    return index < CURVES_AXES ? names[index] : NULL;
}

int curves_range(struct curves_options *options, const char *text, struct error *err) {
    size_t length = strcspn(text, "="), axis = 0;
    while (axis < CURVES_AXES &&
           (strlen(curves_axis(axis)) != length || strncmp(curves_axis(axis), text, length) != 0))
        axis++;
    const char *low = text[length] ? text + length + 1 : "", *colon = strchr(low, ':');
    double from, to;
    if (axis == CURVES_AXES || !colon || !text_real(low, (size_t)(colon - low), &from) ||
        !text_real(colon + 1, strlen(colon + 1), &to) || !(from < to))
        return error_set(err, STATUS_USAGE,
                         "option '--range' needs AXIS=LOW:HIGH, as in loss=0:2.5, with loss, "
                         "accuracy, rate or staleness, not '%s'",
                         text);
    options->range[axis].low = from, options->range[axis].high = to;
    return STATUS_OK;
}

// --- panels -----------------------------------------------------------------------

static bool wide_range(const struct chart *chart) {
    double low = INFINITY, high = 0;
    for (size_t s = 0; s < chart->count; s++)
        extend_range(&chart->series[s], &low, &high);
    if (low > 0 && chart->y_low < chart->y_high)
        low = chart->y_low, high = chart->y_high;
    return low > 0 && high / low > LOG_RATIO;
}

static struct chart chart_frame(const struct figure *f, double left, double top, double width,
                                double height) {
    return (struct chart){
        .left = left,
        .top = top,
        .width = width,
        .height = height,
        .x_title = f->by_time ? "time of training" : "epoch",
        .x_kind = f->by_time ? SCALE_TIME : SCALE_LINEAR,
        .x_high = figure_end(f),
        .series = f->series,
    };
}

// Each learner's own, behind the mean of all; how many there are.
static size_t training_losses(struct figure *f, size_t run, struct chart_series *series) {
    const struct history *history = &f->runs[run];
    size_t count = history->learner_count;
    for (size_t i = 0; i < count; i++) {
        const struct curve *curve = &history->learners[i].loss;
        series[i] = series_of(f, run, CURVE_LOSS);
        series[i].x = curve_x(f, curve);
        series[i].y = curve->value;
        series[i].n = curve->n;
        series[i].stroke = CHART_HAZE;
        series[i].label = false;
    }
    return count;
}

// Training in the background, testing on it.
static int draw_loss(struct figure *f, struct chart chart, struct error *err) {
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++)
        count += training_losses(f, i, &f->series[count]);
    for (size_t i = 0; i < f->count; i++) {
        struct chart_series *train = &f->series[count + i], *test = train + f->count;
        *train = series_of(f, i, CURVE_LOSS);
        *test = series_of(f, i, CURVE_TEST_LOSS);
        train->stroke = test->n > 0 ? CHART_FAINT : CHART_STRONG;
        train->label = test->n == 0 || f->count == 1;
    }
    chart.title = "loss";
    chart.count = count + 2 * f->count;
    set_axis_range(f, &chart, CURVES_LOSS);
    chart.y_kind = wide_range(&chart) ? SCALE_LOG : SCALE_LINEAR;
    return chart_draw(&f->svg, &chart, err);
}

static int draw_accuracy(struct figure *f, struct chart chart, struct error *err) {
    for (size_t i = 0; i < f->count; i++) {
        f->series[i] = series_of(f, i, CURVE_TOP1);
        f->series[i].y = f->percent[i];
    }
    chart.title = "test accuracy, top-1 in %";
    chart.count = f->count;
    chart.percent = true;
    set_axis_range(f, &chart, CURVES_ACCURACY);
    return chart_draw(&f->svg, &chart, err);
}

static int draw_rate(struct figure *f, struct chart chart, struct error *err) {
    for (size_t i = 0; i < f->count; i++)
        f->series[i] = series_of(f, i, CURVE_RATE);
    chart.title = "learning rate";
    chart.count = f->count;
    chart.y_zero = true;
    set_axis_range(f, &chart, CURVES_RATE);
    return chart_draw(&f->svg, &chart, err);
}

static int draw_staleness(struct figure *f, struct chart chart, struct error *err) {
    for (size_t i = 0; i < f->count; i++)
        f->series[i] = series_of(f, i, CURVE_STALENESS);
    chart.title = "mean staleness of updates";
    chart.count = f->count;
    chart.y_zero = true;
    set_axis_range(f, &chart, CURVES_STALENESS);
    return chart_draw(&f->svg, &chart, err);
}

static bool has_curve(const struct figure *f, enum curve_of which) {
    for (size_t i = 0; i < f->count; i++)
        if (f->runs[i].curves[which].n > 0)
            return true;
    return false;
}

static int draw_column(struct figure *f, double left, double top, double width, struct error *err) {
    int status = draw_loss(f, chart_frame(f, left, top, width, PANEL_HEIGHT), err);
    top += PANEL_HEIGHT + EDGE;
    if (status == STATUS_OK)
        status = draw_accuracy(f, chart_frame(f, left, top, width, PANEL_HEIGHT), err);
    top += PANEL_HEIGHT + EDGE;
    if (status == STATUS_OK)
        status = draw_rate(f, chart_frame(f, left, top, width, RATE_HEIGHT), err);
    top += RATE_HEIGHT + EDGE;
    if (status == STATUS_OK && has_curve(f, CURVE_STALENESS))
        status = draw_staleness(f, chart_frame(f, left, top, width, RATE_HEIGHT), err);
    return status;
}

static bool has_learners(const struct figure *f) {
    for (size_t i = 0; i < f->count; i++)
        if (f->runs[i].learner_count > 0)
            return true;
    return false;
}

// One entry of the legend; returns where the next one begins.
static double legend_entry(struct figure *f, double x, double y, const char *colour,
                           enum chart_stroke stroke, const char *dash, const char *text) {
    double ends[] = {x, x + 24}, level[] = {y - 4.5, y - 4.5};
    chart_line(&f->svg, ends, level, 2, stroke, colour, dash);
    if (stroke == CHART_STRONG)
        svg_dot(&f->svg, x + 12, y - 4.5, 3.2, colour);
    svg_text(&f->svg, x + 31, y, ANCHOR_START, 13, "#333333", 0, text);
    return x + 31 + (double)strlen(text) * CHARACTER + 22;
}

static void legend_of_lines(struct figure *f, double y, const char *colour) {
    bool tested = has_curve(f, CURVE_TEST_LOSS), several = has_learners(f);
    double x = EDGE + 8;
    if (tested || several)
        x = legend_entry(f, x, y, colour, tested ? CHART_FAINT : CHART_STRONG, NULL, "training");
    if (tested)
        x = legend_entry(f, x, y, colour, CHART_STRONG, NULL, "test");
    if (several)
        legend_entry(f, x, y, colour, CHART_HAZE, NULL, "training of each worker");
}

// Runs, then what thin and dotted lines mean. Returns the height that it took;
// draws nothing when `draw` is false.
static double draw_legend(struct figure *f, bool draw) {
    double x = EDGE + 8, y = EDGE + 14;
    for (size_t i = 0; f->count > 1 && i < f->count; i++) {
        const char *name = f->runs[i].title;
        double width = 53 + (double)strlen(name) * CHARACTER;
        if (x > EDGE + 8 && x + width > f->width - EDGE)
            x = EDGE + 8, y += LINE;
        if (draw)
            legend_entry(f, x, y, chart_colour(i), CHART_STRONG,
                         i / CHART_COLOURS % 2 ? "6 4" : NULL, name);
        x += width;
    }
    y += f->count > 1 ? LINE : 0;
    const char *colour = f->count > 1 ? "#666666" : chart_colour(0);
    if (draw)
        legend_of_lines(f, y, colour);
    return y + EDGE + 4;
}

static int draw_figure(struct figure *f, FILE *out, struct error *err) {
    enum curves_x x = f->options->x;
    f->width = f->options->width > 0 ? f->options->width
               : x == CURVES_BOTH    ? WIDTH_BOTH
                                     : WIDTH_ONE;
    double top = draw_legend(f, false), left = EDGE;
    double height = top + 2 * (PANEL_HEIGHT + EDGE) + RATE_HEIGHT + EDGE;
    height += has_curve(f, CURVE_STALENESS) ? RATE_HEIGHT + EDGE : 0;
    int columns = x == CURVES_BOTH ? 2 : 1, status = STATUS_OK;
    double width = (f->width - (columns + 1) * EDGE) / columns;
    svg_open(&f->svg, out, f->width, height, "learning curves");
    draw_legend(f, true);
    for (int c = 0; c < columns && status == STATUS_OK; c++, left += width + EDGE) {
        f->by_time = x == CURVES_TIME || c == 1;
        status = draw_column(f, left, top, width, err);
    }
    svg_close(&f->svg);
    if (status == STATUS_OK && ferror(out))
        return error_errno(err, STATUS_IO, "writing the curves");
    return status;
}

static double *accuracy_percents(const struct curve *curve) {
    double *y = mem_array(curve->n, sizeof *y);
    for (size_t i = 0; y && i < curve->n; i++)
        y[i] = 100 * curve->value[i];
    return y;
}

static int allocate_series(struct figure *f, struct error *err) {
    size_t learners = 0;
    for (size_t i = 0; i < f->count; i++)
        learners += f->runs[i].learner_count;
    f->series = mem_zeroed(2 * f->count + learners, sizeof *f->series);
    f->percent = mem_zeroed(f->count, sizeof *f->percent);
    if (!f->series || !f->percent)
        return error_nomem(err);
    for (size_t i = 0; i < f->count; i++)
        if (!(f->percent[i] = accuracy_percents(&f->runs[i].curves[CURVE_TOP1])))
            return error_nomem(err);
    return STATUS_OK;
}

int curves_write(FILE *out, const struct history *runs, size_t count,
                 const struct curves_options *options, struct error *err) {
    struct figure f = {.runs = runs, .count = count, .options = options};
    int status = allocate_series(&f, err);
    if (status == STATUS_OK)
        status = draw_figure(&f, out, err);
    for (size_t i = 0; f.percent && i < count; i++)
        free(f.percent[i]);
    free(f.percent);
    free(f.series);
    return status;
}
