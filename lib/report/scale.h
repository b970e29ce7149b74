// From values to pixels along one axis, with ticks at round numbers.
#ifndef ADAM_REPORT_SCALE_H
#define ADAM_REPORT_SCALE_H

#include <stddef.h>

enum scale_kind {
    SCALE_LINEAR,
    SCALE_LOG,  // values above 0
    SCALE_TIME, // seconds; ticks at whole seconds, minutes, hours or days
};

#define SCALE_TICKS 24
#define SCALE_LABEL 32

struct scale {
    enum scale_kind kind;
    double low, high; // values at the ends
    double from, to;  // their pixels
    double step;      // between ticks (not SCALE_LOG)
    double tick[SCALE_TICKS];
    int ticks;
};

// A scale over [low, high] with about `wanted` ticks. `widen`: the ends move out
// to the ticks beyond. An empty interval is widened in any case.
void scale_fit(struct scale *scale, enum scale_kind kind, double low, double high, int wanted,
               int widen);

double scale_at(const struct scale *scale, double value);

// "0.05", "1e-4", "15".
void scale_label(const struct scale *scale, double tick, char text[SCALE_LABEL]);
// Of SCALE_TIME: what its labels count ("minutes").
const char *scale_unit(const struct scale *scale);

#endif
