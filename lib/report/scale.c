#include "report/scale.h"

#include <math.h>
#include <stdio.h>

// Steps of time that people count in, in seconds.
static const double time_steps[] = {1,     2,     5,     10,    15,     30,     60,
                                    120,   300,   600,   900,   1800,   3600,   7200,
                                    10800, 21600, 43200, 86400, 172800, 432000, 864000};

static const struct unit {
    double seconds;
    const char *name;
} units[] = {{86400, "days"}, {3600, "hours"}, {60, "minutes"}, {1, "seconds"}};

// The smallest of 1, 2 and 5 times a power of ten that is not below `step`.
static double round_step(double step) {
    double power = pow(10, floor(log10(step)));
    double head = step / power;
    return power * (head <= 1.0001 ? 1 : head <= 2.0001 ? 2 : head <= 5.0001 ? 5 : 10);
}

static double round_time(double step) {
    size_t n = sizeof time_steps / sizeof *time_steps;
    for (size_t i = 0; i < n; i++)
        if (time_steps[i] >= step)
            return time_steps[i];
    return 86400 * round_step(step / 86400);
}

static void fit_linear(struct scale *scale, int wanted, int widen) {
    double step = (scale->high - scale->low) / wanted;
    scale->step = scale->kind == SCALE_TIME && step > 0.5 ? round_time(step) : round_step(step);
    double first = ceil(scale->low / scale->step - 1e-9);
    double last = floor(scale->high / scale->step + 1e-9);
    if (widen) {
        first = floor(scale->low / scale->step + 1e-9);
        last = ceil(scale->high / scale->step - 1e-9);
        scale->low = first * scale->step, scale->high = last * scale->step;
    }
    for (double i = first; i <= last && scale->ticks < SCALE_TICKS; i++)
        scale->tick[scale->ticks++] = i * scale->step + 0.0; // never -0
}

// Ticks at powers of ten, and at 2 and 5 times them when there are few.
static void fit_log(struct scale *scale) {
    static const double heads[] = {1, 2, 5};
    double decades = log10(scale->high) - log10(scale->low);
    int stride = decades > 2.5 ? 3 : 1; // 3: only powers of ten
    int first = 3 * (int)floor(log10(scale->low)), last = 3 * (int)ceil(log10(scale->high));
    int skip = decades > 12 ? (int)(decades / 12) + 1 : 1; // decades between ticks
    double below = 0;
    for (int i = first; i <= last && scale->ticks < SCALE_TICKS; i += stride * skip) {
        double tick = heads[(i % 3 + 3) % 3] * pow(10, floor(i / 3.0));
        if (tick <= scale->low * 1.0001)
            below = tick;
        if (below == tick)
            scale->ticks = 0;
        scale->tick[scale->ticks++] = tick;
        if (tick >= scale->high * 0.9999)
            break;
    }
    scale->low = scale->tick[0];
    scale->high = fmax(scale->high, scale->tick[scale->ticks - 1]);
}

void scale_fit(struct scale *scale, enum scale_kind kind, double low, double high, int wanted,
               int widen) {
    *scale = (struct scale){.kind = kind, .low = low, .high = high, .from = 0, .to = 1};
    if (!(high - low > 1e-9 * fmax(fabs(low), fabs(high)))) {
        double margin = low == 0 ? 1 : fabs(low) * 0.5;
        scale->low = low >= 0 ? fmax(0, low - margin) : low - margin;
        scale->high = low + margin;
    }
    if (kind == SCALE_LOG && scale->low > 0)
        fit_log(scale);
    else
        fit_linear(scale, wanted, widen);
}

double scale_at(const struct scale *scale, double value) {
    double part = scale->kind == SCALE_LOG
                      ? (log(value) - log(scale->low)) / (log(scale->high) - log(scale->low))
                      : (value - scale->low) / (scale->high - scale->low);
    return scale->from + part * (scale->to - scale->from);
}

static const struct unit *unit_of(const struct scale *scale) {
    const struct unit *unit = units;
    while (unit->seconds > 1 && unit->seconds > scale->step)
        unit++;
    return unit;
}

const char *scale_unit(const struct scale *scale) {
    return unit_of(scale)->name;
}

void scale_label(const struct scale *scale, double tick, char text[SCALE_LABEL]) {
    if (scale->kind == SCALE_TIME)
        snprintf(text, SCALE_LABEL, "%g", tick / unit_of(scale)->seconds);
    else if (tick != 0 && (fabs(tick) < 0.99e-3 || fabs(tick) >= 1e6))
        snprintf(text, SCALE_LABEL, "%.3g", tick);
    else if (scale->kind == SCALE_LOG)
        snprintf(text, SCALE_LABEL, "%g", tick);
    else {
        int decimals = (int)-floor(log10(scale->step) + 1e-9);
        snprintf(text, SCALE_LABEL, "%.*f", decimals > 0 ? decimals : 0, tick);
    }
}
