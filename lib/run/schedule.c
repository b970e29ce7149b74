#include "run/schedule.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/error.h"
#include "core/text.h"

static int refuse_schedule(const char *text, struct error *err) {
    return error_set(err, STATUS_USAGE,
                     "'%s' is no schedule; write constant, step:FACTOR@EPOCH,..., "
                     "step:FACTOR/EPOCHS, exp:FACTOR or cosine[:RATE]",
                     text);
}

static bool parse_positive(const char *text, size_t length, double *value) {
    return text_real(text, length, value) && *value > 0;
}

// "120,130": epochs that grow.
static bool parse_epochs(struct schedule *schedule, const char *text) {
    for (double last = 0;; text++) {
        size_t length = strcspn(text, ",");
        double *at = &schedule->at[schedule->at_count];
        if (schedule->at_count == SCHEDULE_STEPS_MAX || !parse_positive(text, length, at) ||
            *at <= last)
            return false;
        last = *at;
        schedule->at_count++;
        text += length;
        if (!*text)
            return true;
    }
}

// "0.1@120,130" or "0.5/10". The last slash divides, so that 1/2/10 halves.
static bool parse_step(struct schedule *schedule, const char *text) {
    const char *at = strchr(text, '@'), *slash = strrchr(text, '/');
    const char *end = at ? at : slash;
    if (!end || !parse_positive(text, (size_t)(end - text), &schedule->factor))
        return false;
    return at ? parse_epochs(schedule, at + 1)
              : parse_positive(slash + 1, strlen(slash + 1), &schedule->every);
}

int schedule_parse(struct schedule *schedule, const char *text, struct error *err) {
    size_t name = strcspn(text, ":");
    const char *value = text[name] ? text + name + 1 : NULL;
    bool good = false;
    schedule->at_count = 0;
    schedule->every = schedule->final = 0;
    if (!strcmp(text, "constant")) {
        schedule->kind = SCHEDULE_CONSTANT;
        good = true;
    } else if (!strncmp(text, "step:", 5)) {
        schedule->kind = SCHEDULE_STEP;
        good = parse_step(schedule, value);
    } else if (!strncmp(text, "exp:", 4)) {
        schedule->kind = SCHEDULE_EXPONENTIAL;
        good = parse_positive(value, strlen(value), &schedule->factor);
    } else if (name == 6 && !strncmp(text, "cosine", 6)) {
        schedule->kind = SCHEDULE_COSINE;
        good =
            !value || (text_real(value, strlen(value), &schedule->final) && schedule->final >= 0);
    }
    return good ? STATUS_OK : refuse_schedule(text, err);
}

// How many steps lie behind `epoch`.
static double steps_done(const struct schedule *schedule, double epoch) {
    if (schedule->every > 0)
        return floor(epoch / schedule->every);
    int n = 0;
    while (n < schedule->at_count && epoch >= schedule->at[n])
        n++;
    return n;
}

static double cosine_rate(const struct schedule *schedule, double epoch) {
    double share = schedule->total > 0 && epoch < schedule->total ? epoch / schedule->total : 1;
    return schedule->final + (schedule->rate - schedule->final) * (1 + cos(M_PI * share)) / 2;
}

static double decayed_rate(const struct schedule *schedule, double epoch) {
    switch (schedule->kind) {
    case SCHEDULE_STEP:
        return schedule->rate * pow(schedule->factor, steps_done(schedule, epoch));
    case SCHEDULE_EXPONENTIAL:
        return schedule->rate * pow(schedule->factor, epoch);
    case SCHEDULE_COSINE:
        return cosine_rate(schedule, epoch);
    case SCHEDULE_CONSTANT:
        break;
    }
    return schedule->rate;
}

double schedule_rate(const struct schedule *schedule, double epoch) {
    double rate = decayed_rate(schedule, epoch);
    return epoch < schedule->warmup ? rate * epoch / schedule->warmup : rate;
}
