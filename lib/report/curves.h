// Learning curves: loss, accuracy and learning rate of one or several runs as
// small multiples in one drawing.
#ifndef ADAM_REPORT_CURVES_H
#define ADAM_REPORT_CURVES_H

#include "report/history.h"

struct error;

enum curves_x { CURVES_EPOCH, CURVES_TIME, CURVES_BOTH };
enum curves_axis { CURVES_LOSS, CURVES_ACCURACY, CURVES_RATE, CURVES_STALENESS, CURVES_AXES };

struct curves_options {
    enum curves_x x;
    double width; // in pixels; 0: as wide as is usual
    // What each y axis covers. Where low is not below high, all values of the runs, without
    // those of runs that failed where others did not.
    struct {
        double low, high;
    } range[CURVES_AXES];
};

// Sets a range from "AXIS=LOW:HIGH". STATUS_USAGE.
int curves_range(struct curves_options *options, const char *text, struct error *err);
const char *curves_axis(size_t index); // its name; NULL behind the last

// STATUS_IO when `out` does not take it.
int curves_write(FILE *out, const struct history *runs, size_t count,
                 const struct curves_options *options, struct error *err);

#endif
