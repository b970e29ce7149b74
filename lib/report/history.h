// A run as its metrics tell it (adam-metrics(5)): curves, and what happened.
#ifndef ADAM_REPORT_HISTORY_H
#define ADAM_REPORT_HISTORY_H

#include "core/json.h"

struct error;

// One measured value over the course of a run: n points in order.
struct curve {
    double *step, *epoch, *time, *value; // time: seconds of training
    size_t n, capacity;
};

enum curve_of {
    CURVE_LOSS,  // of training; of many learners the mean
    CURVE_RATE,  // of learning
    CURVE_SPEED, // images/s, of all
    CURVE_WAIT,  // share of the time, 0..1
    CURVE_TEST_LOSS,
    CURVE_TOP1, // of testing, 0..1
    CURVE_TOP5,
    CURVE_MAP,       // mean average precision of testing, 0..1
    CURVE_R2,        // of testing
    CURVE_STALENESS, // mean, of updates on the parameter servers
    HISTORY_CURVES,
};

// What a worker of a run of many tells of itself: "receives the training error from each
// learner" (Rudra 3.1).
struct learner {
    int64_t rank;
    double speed;      // the last
    double earlier;    // mini-batches of its processes before this one
    double batches;    // mini-batches that its process trained on
    struct curve loss; // of training
};

enum history_end { HISTORY_RUNNING, HISTORY_DONE, HISTORY_STOPPED, HISTORY_DIVERGED };

struct history {
    char *name;  // the path without trailing slashes
    char *title; // what people call the run: that, or the folder's name where the path is "."
    struct curve curves[HISTORY_CURVES];
    struct learner *learners; // of a run of many processes, in the order of their first lines
    size_t learner_count;     // else 0
    json_t *starts;           // array of the start events: one, and one each time it was resumed
    enum history_end end;
    char reason[64];     // of HISTORY_STOPPED
    double epoch;        // reached
    double step;         // mini-batches; of a run of many processes, the clock of its weights
    double batches;      // mini-batches trained on, by all
    double began, ended; // first and last line, seconds since 1970; NAN: not told
    double samples;
    double seconds; // of all sessions
};

// `path` is a run's folder or a metrics.jsonl. A last line that is still being
// written is left out; any other damaged line is STATUS_DATA with its number.
// Steps that a resumed run did again replace the earlier ones.
int history_read(struct history *history, const char *path, struct error *err);
void history_free(struct history *history);
// The runs at *count paths, to be freed with history_free_all. Of several paths those where there
// is no run, but a folder or a file of another kind, are left out: `say` gets a line about each,
// and *count becomes the number of runs. Statuses as history_read.
int history_read_all(struct history **runs, char *const *paths, size_t *count,
                     void (*say)(void *self, const char *text), void *self, struct error *err);
void history_free_all(struct history *runs, size_t count);

// The last start event, or NULL.
const json_t *history_start(const struct history *history);

// The highest or the lowest value of a curve, and where it was; NAN without points.
double curve_best(const struct curve *curve, size_t *at);
double curve_least(const struct curve *curve, size_t *at);
double curve_last(const struct curve *curve);

#endif
