#include "train/predict.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/crew.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/turn.h"

// One sample of a batch.
struct sample_result {
    struct sample sample;
    int status;       // why it cannot be used
    struct error why; // when status is not 0
    bool last;        // the source ended with that status
};

struct prediction {
    const struct predict_config *config;
    struct scoring scoring;
    pthread_mutex_t reading; // owns the source and the two below
    bool done;
    uint64_t batches;
    struct turn turn; // owns what is told and counted
    pthread_mutex_t failing;
    int status; // the first failure
    struct error *err;
};

// What one thread owns.
struct predict_thread {
    struct prediction *prediction;
    struct scorer scorer;
    struct sample_result *results; // batch
    float *below;                  // config->below: what the output layer reads, sample by sample
    size_t taken;                  // floats of it
};

static void prediction_fail(struct prediction *p, int status, const struct error *why) {
    pthread_mutex_lock(&p->failing);
    if (p->status == STATUS_OK) {
        p->status = status;
        if (p->err)
            *p->err = *why;
    }
    pthread_mutex_unlock(&p->failing);
    turn_break(&p->turn);
}

// Whether the next sample can be read without waiting for whoever writes it.
static bool input_waits(int descriptor) {
    struct pollfd fd = {.fd = descriptor, .events = POLLIN};
    return descriptor < 0 || poll(&fd, 1, 0) != 0;
}

// Labels beyond the model's classes: a fault where labels count, else none.
static int settle_label(const struct predict_config *config, struct sample *sample,
                        struct error *err) {
    int classes = config->known > 0 ? config->known : model_classes(config->scoring.model);
    if (sample->targets)
        return STATUS_OK;
    if (config->labelled && sample->label < 0)
        return error_set(err, STATUS_DATA, "%s: has no label", sample->path);
    if (config->labelled && sample->label >= classes)
        return classes_unknown(config->classes, classes, sample->path,
                               config->classes->names[sample->label], err);
    if (sample->label >= classes)
        sample->label = LABEL_NONE;
    return STATUS_OK;
}

// Reads the next batch into the thread's results: their count, and the batch's number.
static int take_samples(struct predict_thread *t, uint64_t *number) {
    struct prediction *p = t->prediction;
    const struct predict_config *config = p->config;
    int n = 0;
    pthread_mutex_lock(&p->reading);
    while (n < p->scoring.config.batch && !p->done && (n == 0 || input_waits(config->descriptor))) {
        struct sample_result *result = &t->results[n];
        bool more = true;
        result->status = source_next(config->source, &result->sample, &more, &result->why);
        result->last = result->status != STATUS_OK && result->status != STATUS_SKIPPED;
        if (result->status == STATUS_SKIPPED &&
            source_passes_over(config->source, &result->sample, &result->why))
            continue;
        if (result->status == STATUS_SKIPPED)
            error_context(&result->why, "%s", result->sample.path);
        p->done = !more || result->last;
        if (result->status == STATUS_OK && more)
            result->status = settle_label(config, &result->sample, &result->why);
        n += more || result->status != STATUS_OK;
    }
    *number = p->batches;
    p->batches += n > 0;
    pthread_mutex_unlock(&p->reading);
    return n;
}

// From the sample to its place in the batch.
static int put_in_batch(struct predict_thread *t, struct sample_result *result) {
    struct sample *sample = &result->sample;
    struct error *err = &result->why;
    int status = sample_decode(sample, &t->prediction->scoring.decode, err);
    if (status != STATUS_OK)
        return status; // it names the path already
    status = scorer_add_picture(&t->scorer, &sample->image, sample->label, sample->targets, err);
    return status ? error_context(err, "%s", sample->path) : STATUS_OK;
}

static int count_sample(struct tally *tally, const struct sample *sample, const float *scores,
                        struct error *err) {
    if (sample->targets)
        return tally_add_targets(tally, scores, sample->targets, err);
    tally_add(tally, scores, sample->label);
    return STATUS_OK;
}

static int tell_result(struct predict_thread *t, struct sample_result *result, const float *scores,
                       struct error *err) {
    const struct predict_config *config = t->prediction->config;
    bool bad = !result->last && (result->status == STATUS_SKIPPED || result->status == STATUS_DATA);
    if (result->status == STATUS_OK) {
        if (config->tally && count_sample(config->tally, &result->sample, scores, err))
            return err->status;
        return config->each ? config->each(config->self, &result->sample, scores, err) : STATUS_OK;
    }
    if (bad && config->skip)
        return config->skip(config->self, &result->sample, &result->why, err);
    *err = result->why;
    return bad ? STATUS_DATA : result->status;
}

static size_t below_size(const struct predict_config *config) {
    return shape_size(model_output(config->scoring.model)->in);
}

// In the place of the output layer's forward pass, whose scores nobody wants.
static bool take_below(void *self, const struct layer *layer, float *y, const float *x, int n) {
    struct predict_thread *t = self;
    const struct predict_config *config = t->prediction->config;
    const struct model *model = config->scoring.model;
    size_t count = (size_t)n * below_size(config);
    if (layer != model_output(model))
        return false;
    memcpy(t->below + t->taken, x, count * sizeof *x);
    memset(y, 0, (size_t)n * (size_t)model_classes(model) * sizeof *y);
    t->taken += count;
    return true;
}

// `all`: the scores, or what the output layer reads.
static int tell_batch(struct predict_thread *t, int n, const float *all, struct error *err) {
    const struct predict_config *config = t->prediction->config;
    size_t classes =
        config->below ? below_size(config) : (size_t)model_classes(config->scoring.model);
    int status = STATUS_OK, row = 0;
    if (config->tally && t->scorer.batch.n > 0)
        config->tally->loss += scorer_loss(&t->scorer);
    for (int i = 0; i < n && status == STATUS_OK; i++) {
        const float *scores = all + (size_t)row * classes;
        row += t->results[i].status == STATUS_OK;
        status = tell_result(t, &t->results[i], scores, err);
    }
    return status;
}

static int predict_batches(struct predict_thread *t, struct error *err) {
    struct prediction *p = t->prediction;
    uint64_t number;
    int n, status = STATUS_OK;
    while (status == STATUS_OK && (n = take_samples(t, &number)) > 0) {
        t->scorer.batch.n = 0;
        for (int i = 0; i < n; i++)
            if (t->results[i].status == STATUS_OK)
                t->results[i].status = put_in_batch(t, &t->results[i]);
        t->taken = 0;
        const float *scores;
        status = scorer_pass(&t->scorer, number, &scores, err);
        if (status || !turn_begin(&p->turn, number))
            break;
        status = tell_batch(t, n, p->config->below ? t->below : scores, err);
        if (status == STATUS_OK)
            turn_end(&p->turn);
    }
    return status;
}

static int open_below(struct predict_thread *t, struct error *err) {
    const struct predict_config *config = t->prediction->config;
    size_t floats, batch = (size_t)t->prediction->scoring.config.batch;
    if (!__builtin_mul_overflow(below_size(config), batch, &floats))
        t->below = mem_floats(floats);
    net_shared(t->scorer.net, take_below, t);
    return t->below ? STATUS_OK : error_nomem(err);
}

static int open_thread(struct predict_thread *t, struct error *err) {
    const struct scoring *scoring = &t->prediction->scoring;
    t->results = mem_zeroed((size_t)scoring->config.batch, sizeof *t->results);
    int status = t->results ? scorer_open(&t->scorer, scoring, 1, err) : error_nomem(err);
    return !status && t->prediction->config->below ? open_below(t, err) : status;
}

static void close_thread(struct predict_thread *t) {
    for (int i = 0; t->results && i < t->prediction->scoring.config.batch; i++)
        sample_free(&t->results[i].sample);
    scorer_close(&t->scorer);
    free(t->results);
    free(t->below);
}

static void *predict_thread(void *argument) {
    struct predict_thread t = {.prediction = argument};
    struct error err = {0};
    int status = open_thread(&t, &err);
    if (status == STATUS_OK)
        status = predict_batches(&t, &err);
    if (status != STATUS_OK)
        prediction_fail(t.prediction, status, &err);
    close_thread(&t);
    return NULL;
}

int predict(const struct predict_config *config, struct error *err) {
    struct prediction p = {.config = config, .err = err};
    struct scoring_config scoring = config->scoring;
    scoring.targets = source_targets(config->source);
    int status = scoring_open(&p.scoring, &scoring, err);
    if (status)
        return status;
    turn_init(&p.turn);
    pthread_mutex_init(&p.reading, NULL);
    pthread_mutex_init(&p.failing, NULL);
    status = crew_work(config->threads, predict_thread, &p, err);
    pthread_mutex_destroy(&p.failing);
    pthread_mutex_destroy(&p.reading);
    turn_free(&p.turn);
    scoring_close(&p.scoring);
    status = status ? status : p.status;
    return status || !config->tally ? status : tally_settle(config->tally, err);
}
