// Learning curves: loss, accuracy and learning rate of one or several runs as
// small multiples in one drawing.
#ifndef ADAM_REPORT_CURVES_H
#define ADAM_REPORT_CURVES_H

#include "report/history.h"

enum curves_x { CURVES_EPOCH, CURVES_TIME, CURVES_BOTH };

// STATUS_IO when `out` does not take it.
int curves_write(FILE *out, const struct history *runs, size_t count, enum curves_x x,
                 struct error *err);

#endif
