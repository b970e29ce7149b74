// One panel of a figure: curves over a light grid, the last value of each
// written where it ends.
#ifndef ADAM_REPORT_CHART_H
#define ADAM_REPORT_CHART_H

#include <stdbool.h>

#include "report/scale.h"
#include "report/svg.h"

struct error;

// Colours that stay apart for every kind of colour vision on white (Okabe and
// Ito, "Color Universal Design", 2008; without the yellow).
#define CHART_COLOURS 7
const char *chart_colour(size_t i);

// What is drawn stronger stands on what is drawn fainter.
enum chart_stroke { CHART_STRONG, CHART_FAINT, CHART_HAZE };
// n points joined; dash may be NULL.
void chart_line(struct svg *svg, const double *x, const double *y, size_t n,
                enum chart_stroke stroke, const char *colour, const char *dash);

struct chart_series {
    const double *x, *y; // n points; those that are not finite are left out
    size_t n;
    size_t run; // whose it is, for the caller
    const char *colour;
    const char *dash; // NULL: solid
    enum chart_stroke stroke;
    bool dots;  // mark each point, where there are few
    bool label; // write its last value behind it
};

struct chart {
    double left, top, width, height; // with title, labels and margins
    const char *title;               // what the y axis is
    const char *x_title;
    enum scale_kind x_kind, y_kind; // SCALE_LOG only if all y are above 0
    double x_high;                  // the x axis goes from 0 to here
    bool y_zero;                    // the y axis begins at 0, unless y_low and y_high say more
    bool percent;                   // y in percent
    // What the y axis covers; where equal, all there is. Curves are cut where they leave it, and
    // an arrow before a last value says that it is beyond.
    double y_low, y_high;
    const struct chart_series *series;
    size_t count;
};

int chart_draw(struct svg *svg, const struct chart *chart, struct error *err);

#endif
