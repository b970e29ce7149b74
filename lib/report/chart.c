#include "report/chart.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"

#define INK "#333333"
#define INK_FAINT "#666666"
#define GRID "#e6e6e6"
#define AXIS "#999999"

enum {
    MARGIN_LEFT = 52,
    MARGIN_RIGHT = 62,
    MARGIN_TOP = 30,
    MARGIN_BOTTOM = 40,
    TEXT_SIZE = 13,
    LABEL_GAP = 15, // between the baselines of two end labels
    DOTS_MOST = 40,
};

const char *chart_colour(size_t i) {
    static const char *const colours[CHART_COLOURS] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                       "#e69f00", "#56b4e9", "#000000"};
    return colours[i % CHART_COLOURS];
}

void chart_line(struct svg *svg, const double *x, const double *y, size_t n,
                enum chart_stroke stroke, const char *colour, const char *dash) {
    static const struct {
        double width, opacity;
    } strokes[] = {
        [CHART_STRONG] = {2, 1},
        [CHART_FAINT] = {1.3, 0.55},
        [CHART_HAZE] = {1, 0.25},
    };
    svg_path(svg, x, y, n, colour, strokes[stroke].width, dash, strokes[stroke].opacity);
}

static bool point_is_drawable(const struct chart *chart, const struct chart_series *series,
                              size_t i) {
    double y = series->y[i];
    return isfinite(series->x[i]) && isfinite(y) && (chart->y_kind != SCALE_LOG || y > 0);
}

// The range of all y; false without any.
static bool y_range(const struct chart *chart, double *low, double *high) {
    *low = INFINITY, *high = -INFINITY;
    for (size_t s = 0; s < chart->count; s++)
        for (size_t i = 0; i < chart->series[s].n; i++)
            if (point_is_drawable(chart, &chart->series[s], i)) {
                *low = fmin(*low, chart->series[s].y[i]);
                *high = fmax(*high, chart->series[s].y[i]);
            }
    bool any = *low <= *high;
    if (any && chart->y_low < chart->y_high)
        *low = chart->y_low, *high = chart->y_high;
    else if (any && chart->percent && *low == *high)
        *low = 0, *high = 100;
    else if (any && chart->y_zero)
        *low = fmin(*low, 0);
    return any;
}

static void value_text(const struct chart *chart, double value, char text[SCALE_LABEL]) {
    bool tiny = value != 0 && fabs(value) < 1e-4;
    if (chart->percent)
        snprintf(text, SCALE_LABEL, "%.2f%%", value);
    else
        snprintf(text, SCALE_LABEL, tiny ? "%.2g" : "%.3g", value); // within MARGIN_RIGHT
}

static void draw_axes(struct svg *svg, const struct chart *chart, const struct scale *x,
                      const struct scale *y) {
    char text[SCALE_LABEL + 2];
    svg_text(svg, x->from - MARGIN_LEFT + 8, chart->top + 18, ANCHOR_START, TEXT_SIZE + 1, INK, 1,
             chart->title);
    for (int i = 0; i < y->ticks; i++) {
        double at = scale_at(y, y->tick[i]);
        scale_label(y, y->tick[i], text);
        svg_line(svg, x->from, at, x->to, at, GRID, 1);
        svg_text(svg, x->from - 7, at + 4.5, ANCHOR_END, TEXT_SIZE, INK_FAINT, 0, text);
    }
    svg_line(svg, x->from, y->from, x->to, y->from, AXIS, 1);
    for (int i = 0; i < x->ticks; i++) {
        double at = scale_at(x, x->tick[i]);
        scale_label(x, x->tick[i], text);
        svg_line(svg, at, y->from, at, y->from + 4, AXIS, 1);
        svg_text(svg, at, y->from + 18, ANCHOR_MIDDLE, TEXT_SIZE, INK_FAINT, 0, text);
    }
    const char *unit = chart->x_kind == SCALE_TIME ? scale_unit(x) : "";
    char title[96];
    snprintf(title, sizeof title, "%s%s%s", chart->x_title, *unit ? ", " : "", unit);
    svg_text(svg, (x->from + x->to) / 2, y->from + 35, ANCHOR_MIDDLE, TEXT_SIZE, INK_FAINT, 0,
             title);
}

// The points of a series in pixels; of several in one column of pixels, the mean.
static size_t to_pixels(const struct chart *chart, const struct chart_series *series,
                        const struct scale *x, const struct scale *y, double *px, double *py) {
    size_t columns = 0, in_column = 0;
    double last_column = NAN;
    bool thin_out = series->n > (size_t)(x->to - x->from);
    for (size_t i = 0; i < series->n; i++) {
        if (!point_is_drawable(chart, series, i))
            continue;
        double at_x = scale_at(x, series->x[i]), at_y = scale_at(y, series->y[i]);
        double column = floor(at_x);
        if (!thin_out || column != last_column)
            columns++, in_column = 0;
        size_t c = columns - 1;
        px[c] = in_column ? px[c] : at_x;
        py[c] = in_column ? py[c] + (at_y - py[c]) / (double)(in_column + 1) : at_y;
        in_column++;
        last_column = column;
    }
    return columns;
}

// A level moved to the nearer end of the axis, if it is beyond it.
static double clamp_to_axis(const struct scale *y, double level) {
    return fmin(fmax(level, y->to), y->from);
}

// Of the line from (ax, ay) to (bx, by) the first point on the axis: ay is beyond one of its ends.
static void axis_crossing(const struct scale *y, double ax, double ay, double bx, double by,
                          double *at_x, double *at_y) {
    *at_y = clamp_to_axis(y, ay);
    *at_x = ax + (bx - ax) * (*at_y - ay) / (by - ay);
}

// Joins n points, cut where they leave the axis. `cx` and `cy` have room for n points.
static void draw_line(struct svg *svg, const struct chart_series *series, const struct scale *y,
                      const double *px, const double *py, size_t n, double *cx, double *cy) {
    size_t count = 0; // points of the piece under way
    for (size_t i = 0; i < n; i++) {
        bool in = clamp_to_axis(y, py[i]) == py[i];
        bool from_outside =
            i > 0 && count == 0 && clamp_to_axis(y, py[i - 1]) != clamp_to_axis(y, py[i]);
        if (from_outside) {
            axis_crossing(y, px[i - 1], py[i - 1], px[i], py[i], &cx[count], &cy[count]);
            count++;
        }
        if (in)
            cx[count] = px[i], cy[count] = py[i], count++;
        else if (count > 0) {
            axis_crossing(y, px[i], py[i], px[i - 1], py[i - 1], &cx[count], &cy[count]);
            count++;
        }
        if (count > 0 && (!in || i + 1 == n)) {
            chart_line(svg, cx, cy, count, series->stroke, series->colour, series->dash);
            count = 0;
        }
    }
}

struct end_label {
    double y;
    const char *colour;
    char text[SCALE_LABEL + 4]; // an arrow and the value
};

// The last value, behind an arrow where it is beyond the axis.
static struct end_label series_label(const struct chart *chart, const struct chart_series *series,
                                     const struct scale *y, double level) {
    struct end_label label = {.y = clamp_to_axis(y, level), .colour = series->colour};
    char value[SCALE_LABEL];
    size_t last = series->n - 1;
    while (!point_is_drawable(chart, series, last))
        last--;
    value_text(chart, series->y[last], value);
    const char *arrow = level < y->to ? "\u2191" : level > y->from ? "\u2193" : "";
    snprintf(label.text, sizeof label.text, "%s%s", arrow, value);
    return label;
}

static int draw_series(struct svg *svg, const struct chart *chart,
                       const struct chart_series *series, const struct scale *x,
                       const struct scale *y, struct end_label *label, struct error *err) {
    // Points in pixels, x and y, and room for the pieces that are seen.
    double *px = mem_array(series->n, 4 * sizeof *px);
    if (!px)
        return error_nomem(err);
    double *py = px + series->n;
    size_t n = to_pixels(chart, series, x, y, px, py);
    draw_line(svg, series, y, px, py, n, py + series->n, py + 2 * series->n);
    for (size_t i = 0; i < n && series->stroke == CHART_STRONG; i++)
        if (clamp_to_axis(y, py[i]) == py[i] && ((series->dots && n <= DOTS_MOST) || i == n - 1))
            svg_dot(svg, px[i], py[i], 3.2, series->colour);
    if (n > 0 && series->label)
        *label = series_label(chart, series, y, py[n - 1]);
    free(px);
    return STATUS_OK;
}

static int by_y(const void *a, const void *b) {
    const struct end_label *p = a, *q = b;
    return (p->y > q->y) - (p->y < q->y);
}

// Pushes labels apart that would overlap, and keeps them above the bottom.
static void draw_labels(struct svg *svg, struct end_label *labels, size_t n, double x,
                        double bottom) {
    qsort(labels, n, sizeof *labels, by_y);
    for (size_t i = 1; i < n; i++)
        labels[i].y = fmax(labels[i].y, labels[i - 1].y + LABEL_GAP);
    for (size_t i = n; i-- > 0; bottom = labels[i].y - LABEL_GAP)
        labels[i].y = fmin(labels[i].y, bottom);
    for (size_t i = 0; i < n; i++)
        svg_text(svg, x, labels[i].y + 4.5, ANCHOR_START, TEXT_SIZE, labels[i].colour, 1,
                 labels[i].text);
}

static int draw_curves(struct svg *svg, const struct chart *chart, const struct scale *x,
                       const struct scale *y, struct error *err) {
    struct end_label *labels = mem_zeroed(chart->count, sizeof *labels);
    if (!labels)
        return error_nomem(err);
    int status = STATUS_OK;
    size_t n = 0;
    for (size_t s = 0; s < chart->count && status == STATUS_OK; s++) {
        status = draw_series(svg, chart, &chart->series[s], x, y, &labels[n], err);
        n += labels[n].colour != NULL;
    }
    draw_labels(svg, labels, n, x->to + 7, y->from - 4);
    free(labels);
    return status;
}

int chart_draw(struct svg *svg, const struct chart *chart, struct error *err) {
    double low, high, right = chart->left + chart->width, bottom = chart->top + chart->height;
    struct scale x, y;
    bool any = y_range(chart, &low, &high);
    scale_fit(&x, chart->x_kind, 0, chart->x_high, (int)(chart->width / 80), 0);
    scale_fit(&y, any ? chart->y_kind : SCALE_LINEAR, any ? low : 0, any ? high : 1,
              (int)(chart->height / 50), 1);
    x.from = chart->left + MARGIN_LEFT, x.to = right - MARGIN_RIGHT;
    y.from = bottom - MARGIN_BOTTOM, y.to = chart->top + MARGIN_TOP;
    draw_axes(svg, chart, &x, &y);
    if (any)
        return draw_curves(svg, chart, &x, &y, err);
    svg_text(svg, (x.from + x.to) / 2, (y.from + y.to) / 2, ANCHOR_MIDDLE, TEXT_SIZE, INK_FAINT, 0,
             "nothing recorded");
    return STATUS_OK;
}
