#include "train/predict.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/crew.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/turn.h"
#include "data/input.h"
#include "model/prepared.h"

// One sample of a batch.
struct sample_result {
    struct sample sample;
    int status;       // why it cannot be used
    struct error why; // when status is not 0
    bool last;        // the source ended with that status
};

struct predictor {
    const struct predict_config *config;
    struct input_config input;
    struct decode_options decode;
    pthread_mutex_t reading; // owns the source and the two below
    bool done;
    uint64_t batches;
    struct prepared *prepared;
    struct turn turn; // owns what is told and counted
    pthread_mutex_t failing;
    int status; // the first failure
    struct error *err;
};

// What one thread owns.
struct predict_thread {
    struct predictor *predictor;
    struct net *net;
    struct input input;
    struct sample_result *results; // batch
    struct batch batch;            // the usable ones
    float *below;                  // config->below: what the output layer reads, sample by sample
    size_t taken;                  // floats of it
};

static void predictor_fail(struct predictor *p, int status, const struct error *why) {
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
    int classes = config->known > 0 ? config->known : model_classes(config->model);
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
    struct predictor *p = t->predictor;
    const struct predict_config *config = p->config;
    int n = 0;
    pthread_mutex_lock(&p->reading);
    while (n < config->batch && !p->done && (n == 0 || input_waits(config->descriptor))) {
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
    struct batch *batch = &t->batch;
    struct sample *sample = &result->sample;
    struct error *err = &result->why;
    int status = sample_decode(sample, &t->predictor->decode, err);
    if (status != STATUS_OK)
        return status; // it names the path already
    batch->label[batch->n] = sample->label;
    status = input_put(&t->input, &sample->image, 0, batch, batch->n, err);
    if (status != STATUS_OK)
        return error_context(err, "%s", sample->path);
    batch->n++;
    return STATUS_OK;
}

static int tell_result(struct predict_thread *t, struct sample_result *result, const float *scores,
                       struct error *err) {
    const struct predict_config *config = t->predictor->config;
    bool bad = !result->last && (result->status == STATUS_SKIPPED || result->status == STATUS_DATA);
    if (result->status == STATUS_OK) {
        if (config->tally)
            tally_add(config->tally, scores, result->sample.label);
        return config->each ? config->each(config->self, &result->sample, scores, err) : STATUS_OK;
    }
    if (bad && config->skip)
        return config->skip(config->self, &result->sample, &result->why, err);
    *err = result->why;
    return bad ? STATUS_DATA : result->status;
}

static size_t below_size(const struct predict_config *config) {
    return shape_size(model_output(config->model)->in);
}

// In the place of the output layer's forward pass, whose scores nobody wants.
static bool take_below(void *self, const struct layer *layer, float *y, const float *x, int n) {
    struct predict_thread *t = self;
    const struct predict_config *config = t->predictor->config;
    size_t count = (size_t)n * below_size(config);
    if (layer != model_output(config->model))
        return false;
    memcpy(t->below + t->taken, x, count * sizeof *x);
    memset(y, 0, (size_t)n * (size_t)model_classes(config->model) * sizeof *y);
    t->taken += count;
    return true;
}

static int tell_batch(struct predict_thread *t, int n, struct error *err) {
    const struct predict_config *config = t->predictor->config;
    size_t classes = config->below ? below_size(config) : (size_t)model_classes(config->model);
    const float *all = config->below ? t->below : net_scores(t->net);
    int status = STATUS_OK, row = 0;
    if (config->tally && t->batch.n > 0)
        config->tally->loss += net_loss(t->net, t->batch.label);
    for (int i = 0; i < n && status == STATUS_OK; i++) {
        const float *scores = all + (size_t)row * classes;
        row += t->results[i].status == STATUS_OK;
        status = tell_result(t, &t->results[i], scores, err);
    }
    return status;
}

static int predict_batches(struct predict_thread *t, struct error *err) {
    struct predictor *p = t->predictor;
    uint64_t number;
    int n, status = STATUS_OK;
    while (status == STATUS_OK && (n = take_samples(t, &number)) > 0) {
        t->batch.n = 0;
        for (int i = 0; i < n; i++)
            if (t->results[i].status == STATUS_OK)
                t->results[i].status = put_in_batch(t, &t->results[i]);
        if (!p->config->exact)
            prepared_pass(p->prepared, t->net, number);
        t->taken = 0;
        if (t->batch.n > 0)
            net_forward(t->net, p->config->parameters, t->batch.input, t->batch.n, NULL, 0);
        if (!turn_begin(&p->turn, number))
            break;
        status = tell_batch(t, n, err);
        if (status == STATUS_OK)
            turn_end(&p->turn);
    }
    return status;
}

static int open_below(struct predict_thread *t, struct error *err) {
    const struct predict_config *config = t->predictor->config;
    size_t floats;
    if (!__builtin_mul_overflow(below_size(config), (size_t)config->batch, &floats))
        t->below = mem_floats(floats);
    net_shared(t->net, take_below, t);
    return t->below ? STATUS_OK : error_nomem(err);
}

static int open_thread(struct predict_thread *t, struct error *err) {
    const struct predict_config *config = t->predictor->config;
    size_t batch = (size_t)config->batch, values = input_values(&t->predictor->input);
    if (__builtin_mul_overflow(values, batch, &values))
        return error_nomem(err);
    t->results = mem_zeroed(batch, sizeof *t->results);
    t->batch.label = mem_zeroed(batch, sizeof *t->batch.label);
    t->batch.input = mem_floats(values);
    if (!t->results || !t->batch.label || !t->batch.input)
        return error_nomem(err);
    if (input_open(&t->input, &t->predictor->input, err))
        return STATUS_IO;
    int status = net_open(&t->net, config->model, config->kernels, config->batch, NET_PREDICT, err);
    return !status && config->below ? open_below(t, err) : status;
}

static void close_thread(struct predict_thread *t) {
    for (int i = 0; t->results && i < t->predictor->config->batch; i++)
        sample_free(&t->results[i].sample);
    net_close(t->net);
    input_close(&t->input);
    free(t->results);
    free(t->batch.label);
    free(t->batch.input);
    free(t->below);
}

static void *predict_thread(void *argument) {
    struct predict_thread t = {.predictor = argument};
    struct error err = {0};
    int status = open_thread(&t, &err);
    if (status == STATUS_OK)
        status = predict_batches(&t, &err);
    if (status != STATUS_OK)
        predictor_fail(t.predictor, status, &err);
    close_thread(&t);
    return NULL;
}

// `take` has checked the labels.
static struct input_config input_of(const struct predict_config *config) {
    const struct shape in = model_input(config->model)->out;
    return (struct input_config){
        .before = config->before,
        .input = config->input,
        .channels = in.c,
        .height = in.h,
        .width = in.w,
        .advise = true,
    };
}

int predict(const struct predict_config *config, struct error *err) {
    struct predictor p = {
        .config = config, .input = input_of(config), .decode = config->decode, .err = err};
    input_decode_hint(&p.input, &p.decode); // a JPEG picture may be decoded smaller
    int status = prepared_open(&p.prepared, config->model, config->kernels, config->parameters,
                               config->batch, err);
    if (status)
        return status;
    turn_init(&p.turn);
    pthread_mutex_init(&p.reading, NULL);
    pthread_mutex_init(&p.failing, NULL);
    status = crew_work(config->threads, predict_thread, &p, err);
    pthread_mutex_destroy(&p.failing);
    pthread_mutex_destroy(&p.reading);
    turn_free(&p.turn);
    prepared_close(p.prepared);
    return status ? status : p.status;
}

int predict_classes(struct classes *out, const struct classes *given, int count,
                    struct error *err) {
    int label, status = STATUS_OK;
    char number[32];
    *out = (struct classes){0};
    if (given->count > count)
        return error_set(err, STATUS_DATA, "there are %d class names for a model of %d classes",
                         given->count, count);
    for (int i = 0; i < given->count && status == STATUS_OK; i++)
        status = classes_label(out, given->names[i], &label, err);
    while (out->count < count && status == STATUS_OK) {
        snprintf(number, sizeof number, "%d", out->count);
        if (classes_find(out, number) >= 0) // a name that looks like another's number
            snprintf(number, sizeof number, "class %d", out->count);
        status = classes_label(out, number, &label, err);
    }
    if (status != STATUS_OK)
        classes_free(out);
    return status;
}
