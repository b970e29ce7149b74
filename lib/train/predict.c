#include "train/predict.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/crew.h"
#include "core/mem.h"
#include "core/turn.h"
#include "data/input.h"
#include "model/prepared.h"

// One sample of a batch.
struct slot {
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
struct worker {
    struct predictor *predictor;
    struct net *net;
    struct input input;
    struct slot *slots; // batch
    struct batch batch; // the usable ones
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

// Reads the next batch into the worker's slots: their count, and the batch's number.
static int take_samples(struct worker *w, uint64_t *number) {
    struct predictor *p = w->predictor;
    const struct predict_config *config = p->config;
    int n = 0;
    pthread_mutex_lock(&p->reading);
    while (n < config->batch && !p->done && (n == 0 || input_waits(config->descriptor))) {
        struct slot *slot = &w->slots[n];
        bool more = true;
        slot->status = source_next(config->source, &slot->sample, &more, &slot->why);
        slot->last = slot->status != STATUS_OK && slot->status != STATUS_SKIPPED;
        if (slot->status == STATUS_SKIPPED &&
            source_passes_over(config->source, &slot->sample, &slot->why))
            continue;
        if (slot->status == STATUS_SKIPPED)
            error_context(&slot->why, "%s", slot->sample.path);
        p->done = !more || slot->last;
        if (slot->status == STATUS_OK && more)
            slot->status = settle_label(config, &slot->sample, &slot->why);
        n += more || slot->status != STATUS_OK;
    }
    *number = p->batches;
    p->batches += n > 0;
    pthread_mutex_unlock(&p->reading);
    return n;
}

// From the sample to its place in the batch.
static int put_in_batch(struct worker *w, struct slot *slot) {
    struct batch *batch = &w->batch;
    struct sample *sample = &slot->sample;
    struct error *err = &slot->why;
    int status = sample_decode(sample, &w->predictor->decode, err);
    if (status != STATUS_OK)
        return status; // it names the path already
    batch->label[batch->n] = sample->label;
    status = input_put(&w->input, &sample->image, 0, batch, batch->n, err);
    if (status != STATUS_OK)
        return error_context(err, "%s", sample->path);
    batch->n++;
    return STATUS_OK;
}

static int tell_result(struct worker *w, struct slot *slot, const float *scores,
                       struct error *err) {
    const struct predict_config *config = w->predictor->config;
    bool bad = !slot->last && (slot->status == STATUS_SKIPPED || slot->status == STATUS_DATA);
    if (slot->status == STATUS_OK) {
        if (config->tally)
            tally_add(config->tally, scores, slot->sample.label);
        return config->each ? config->each(config->self, &slot->sample, scores, err) : STATUS_OK;
    }
    if (bad && config->skip)
        return config->skip(config->self, &slot->sample, &slot->why, err);
    *err = slot->why;
    return bad ? STATUS_DATA : slot->status;
}

static int tell_batch(struct worker *w, int n, struct error *err) {
    const struct predict_config *config = w->predictor->config;
    size_t classes = (size_t)model_classes(config->model);
    int status = STATUS_OK, row = 0;
    if (config->tally && w->batch.n > 0)
        config->tally->loss += net_loss(w->net, w->batch.label);
    for (int i = 0; i < n && status == STATUS_OK; i++) {
        const float *scores = net_scores(w->net) + (size_t)row * classes;
        row += w->slots[i].status == STATUS_OK;
        status = tell_result(w, &w->slots[i], scores, err);
    }
    return status;
}

static int predict_batches(struct worker *w, struct error *err) {
    struct predictor *p = w->predictor;
    uint64_t number;
    int n, status = STATUS_OK;
    while (status == STATUS_OK && (n = take_samples(w, &number)) > 0) {
        w->batch.n = 0;
        for (int i = 0; i < n; i++)
            if (w->slots[i].status == STATUS_OK)
                w->slots[i].status = put_in_batch(w, &w->slots[i]);
        if (!p->config->exact)
            prepared_pass(p->prepared, w->net, number);
        if (w->batch.n > 0)
            net_forward(w->net, p->config->parameters, w->batch.input, w->batch.n, NULL, 0);
        if (!turn_begin(&p->turn, number))
            break;
        status = tell_batch(w, n, err);
        if (status == STATUS_OK)
            turn_end(&p->turn);
    }
    return status;
}

static int open_worker(struct worker *w, struct error *err) {
    const struct predict_config *config = w->predictor->config;
    size_t batch = (size_t)config->batch, values = input_values(&w->predictor->input);
    if (__builtin_mul_overflow(values, batch, &values))
        return error_nomem(err);
    w->slots = mem_zeroed(batch, sizeof *w->slots);
    w->batch.label = mem_zeroed(batch, sizeof *w->batch.label);
    w->batch.input = mem_floats(values);
    if (!w->slots || !w->batch.label || !w->batch.input)
        return error_nomem(err);
    if (input_open(&w->input, &w->predictor->input, err))
        return STATUS_IO;
    return net_open(&w->net, config->model, config->kernels, config->batch, NET_PREDICT, err);
}

static void close_worker(struct worker *w) {
    for (int i = 0; w->slots && i < w->predictor->config->batch; i++)
        sample_free(&w->slots[i].sample);
    net_close(w->net);
    input_close(&w->input);
    free(w->slots);
    free(w->batch.label);
    free(w->batch.input);
}

static void *predict_thread(void *argument) {
    struct worker w = {.predictor = argument};
    struct error err = {0};
    int status = open_worker(&w, &err);
    if (status == STATUS_OK)
        status = predict_batches(&w, &err);
    if (status != STATUS_OK)
        predictor_fail(w.predictor, status, &err);
    close_worker(&w);
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
