#include "answer/figures.h"

#include <inttypes.h>

#include "core/grow.h"

// Upper bounds, in seconds.
static const double bounds[FIGURES_BUCKETS] = {0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.03,
                                               0.05,   0.1,   0.2,   0.5,   1,     2,    5,    10};

void figures_open(struct figures *f) {
    *f = (struct figures){0};
    pthread_mutex_init(&f->lock, NULL);
}

void figures_close(struct figures *f) {
    pthread_mutex_destroy(&f->lock);
}

void figures_request(struct figures *f, int code) {
    int i = 0;
    pthread_mutex_lock(&f->lock);
    while (i < FIGURES_CODES - 1 && f->requests[i].count > 0 && f->requests[i].code != code)
        i++;
    f->requests[i].code = code;
    f->requests[i].count++;
    pthread_mutex_unlock(&f->lock);
}

void figures_predicted(struct figures *f, int samples, double seconds) {
    int i = 0;
    while (i < FIGURES_BUCKETS && seconds > bounds[i])
        i++;
    pthread_mutex_lock(&f->lock);
    f->took[i]++;
    f->seconds += seconds;
    f->samples += (uint64_t)samples;
    pthread_mutex_unlock(&f->lock);
}

static void put_head(struct grow *out, const char *name, const char *type, const char *help) {
    grow_format(out, "# HELP adam_predict_%s %s\n# TYPE adam_predict_%s %s\n", name, help, name,
                type);
}

static void put_requests(struct grow *out, const struct figures *f) {
    put_head(out, "requests_total", "counter",
             "Requests by the status of their answer; 0: the caller went away.");
    for (int i = 0; i < FIGURES_CODES && f->requests[i].count > 0; i++)
        grow_format(out, "adam_predict_requests_total{code=\"%d\"} %" PRIu64 "\n",
                    f->requests[i].code, f->requests[i].count);
}

static void put_times(struct grow *out, const struct figures *f) {
    uint64_t sum = 0;
    put_head(out, "seconds", "histogram",
             "Time from a whole request for predictions to its answer.");
    for (int i = 0; i < FIGURES_BUCKETS; i++) {
        sum += f->took[i];
        grow_format(out, "adam_predict_seconds_bucket{le=\"%g\"} %" PRIu64 "\n", bounds[i], sum);
    }
    sum += f->took[FIGURES_BUCKETS];
    grow_format(out, "adam_predict_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", sum);
    grow_format(out, "adam_predict_seconds_sum %.9g\nadam_predict_seconds_count %" PRIu64 "\n",
                f->seconds, sum);
}

static void put_number(struct grow *out, const char *name, const char *type, const char *help,
                       uint64_t value) {
    put_head(out, name, type, help);
    grow_format(out, "adam_predict_%s %" PRIu64 "\n", name, value);
}

char *figures_text(struct figures *f, uint64_t passes, int connections) {
    struct grow out = {0};
    pthread_mutex_lock(&f->lock);
    put_requests(&out, f);
    put_number(&out, "samples_total", "counter", "Samples that were predicted.", f->samples);
    put_number(&out, "passes_total", "counter", "Passes of one or more samples through the model.",
               passes);
    put_times(&out, f);
    pthread_mutex_unlock(&f->lock);
    put_number(&out, "connections", "gauge", "Open connections.", (uint64_t)connections);
    return grow_take(&out);
}
