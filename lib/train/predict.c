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
    struct ops_scratch *scratch;
    struct image picture; // the one that operations change
    struct slot *slots;   // batch
    float *input;         // batch x channels x height x width
    int32_t *labels;      // of the rows of input
    int rows;             // usable samples of this batch
};

static void fail(struct predictor *p, int status, const struct error *why) {
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
static int check_label(const struct predict_config *config, struct sample *sample,
                       struct error *err) {
    int classes = model_classes(config->model);
    if (config->labelled && sample->label < 0)
        return error_set(err, STATUS_DATA, "%s: has no label", sample->path);
    if (config->labelled && sample->label >= classes)
        return error_set(err, STATUS_DATA, "%s: class '%s' is not one of the model's %d",
                         sample->path, config->classes->names[sample->label], classes);
    if (sample->label >= classes)
        sample->label = LABEL_NONE;
    return STATUS_OK;
}

// Reads the next batch into the worker's slots: their count, and the batch's number.
static int take(struct worker *w, uint64_t *number) {
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
            slot->status = check_label(config, &slot->sample, &slot->why);
        n += more || slot->status != STATUS_OK;
    }
    *number = p->batches;
    p->batches += n > 0;
    pthread_mutex_unlock(&p->reading);
    return n;
}

// A picture of another shape: the error says which operations bring it there.
static int fill_row(float *row, struct shape in, const struct image *picture, struct error *err) {
    int status = input_fill(row, in.c, in.h, in.w, picture, err);
    bool size = picture->width != in.w || picture->height != in.h;
    bool gray = in.c == 1 && picture->channels == 3;
    if (status != STATUS_DATA || (picture->channels != in.c && !gray))
        return status;
    char resize[48] = "", shape[ERROR_TEXT];
    snprintf(shape, sizeof shape, "%s", err->text);
    if (size)
        snprintf(resize, sizeof resize, "resize %dx%d exact%s", in.w, in.h, gray ? "; " : "");
    return error_set(err, STATUS_DATA, "%.1900s; these operations before would do: '%s%s'", shape,
                     resize, gray ? "gray" : "");
}

// From the sample to its row of the input.
static int prepare(struct worker *w, struct slot *slot) {
    const struct predict_config *config = w->predictor->config;
    struct shape in = model_input(config->model)->out;
    struct sample *sample = &slot->sample;
    struct error *err = &slot->why;
    float *row = w->input + (size_t)w->rows * net_sample(w->net);
    struct ops_draw draw = {0};
    int status = sample_decode(sample, &w->predictor->decode, err);
    if (status != STATUS_OK)
        return status; // it names the path already
    status = image_copy(&w->picture, &sample->image, err);
    if (status == STATUS_OK && config->before)
        status = ops_apply(config->before, w->scratch, &w->picture, draw, err);
    if (status == STATUS_OK && config->input)
        status = ops_apply(config->input, w->scratch, &w->picture, draw, err);
    if (status == STATUS_OK)
        status = fill_row(row, in, &w->picture, err);
    if (status != STATUS_OK)
        return error_context(err, "%s", sample->path);
    w->labels[w->rows++] = sample->label;
    return STATUS_OK;
}

static int tell(struct worker *w, struct slot *slot, const float *scores, struct error *err) {
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
    if (config->tally && w->rows > 0)
        config->tally->loss += net_loss(w->net, w->labels);
    for (int i = 0; i < n && status == STATUS_OK; i++) {
        const float *scores = net_scores(w->net) + (size_t)row * classes;
        row += w->slots[i].status == STATUS_OK;
        status = tell(w, &w->slots[i], scores, err);
    }
    return status;
}

static int run(struct worker *w, struct error *err) {
    struct predictor *p = w->predictor;
    uint64_t number;
    int n, status = STATUS_OK;
    while (status == STATUS_OK && (n = take(w, &number)) > 0) {
        w->rows = 0;
        for (int i = 0; i < n; i++)
            if (w->slots[i].status == STATUS_OK)
                w->slots[i].status = prepare(w, &w->slots[i]);
        if (!p->config->exact)
            prepared_pass(p->prepared, w->net, number);
        if (w->rows > 0)
            net_forward(w->net, p->config->parameters, w->input, w->rows, NULL, 0);
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
    size_t batch = (size_t)config->batch, values = shape_size(model_input(config->model)->out);
    if (__builtin_mul_overflow(values, batch, &values))
        return error_nomem(err);
    w->slots = mem_zeroed(batch, sizeof *w->slots);
    w->labels = mem_zeroed(batch, sizeof *w->labels);
    w->input = mem_floats(values);
    w->scratch = ops_scratch_new();
    if (!w->slots || !w->labels || !w->input || !w->scratch)
        return error_nomem(err);
    return net_open(&w->net, config->model, config->kernels, config->batch, NET_PREDICT, err);
}

static void close_worker(struct worker *w) {
    for (int i = 0; w->slots && i < w->predictor->config->batch; i++)
        sample_free(&w->slots[i].sample);
    net_close(w->net);
    ops_scratch_free(w->scratch);
    image_free(&w->picture);
    free(w->slots);
    free(w->labels);
    free(w->input);
}

static void *predict_thread(void *argument) {
    struct worker w = {.predictor = argument};
    struct error err = {0};
    int status = open_worker(&w, &err);
    if (status == STATUS_OK)
        status = run(&w, &err);
    if (status != STATUS_OK)
        fail(w.predictor, status, &err);
    close_worker(&w);
    return NULL;
}

// JPEG pictures may be decoded smaller when the first chain shrinks them.
static struct decode_options decode_hint(const struct predict_config *config) {
    struct decode_options decode = config->decode;
    if (config->before || config->input)
        ops_decode_hint(config->before ? config->before : config->input, &decode);
    return decode;
}

int predict(const struct predict_config *config, struct error *err) {
    struct predictor p = {.config = config, .decode = decode_hint(config), .err = err};
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
