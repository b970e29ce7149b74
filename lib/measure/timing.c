#include "measure/timing.h"

#include <stdlib.h>

#include "core/clock.h"
#include "core/mem.h"
#include "core/random.h"
#include "model/layer.h"
#include "ps/optimizer.h"

enum {
    PASSES_MOST = 2000,
    PASSES_LEAST = 5,
    WARMING = 2, // passes before the first that counts: caches, pages, clock rates
};

// One thread's training step on samples that never change, at learning rate 0.
struct trial {
    struct timing *timing;
    struct net *net;
    struct arena arena;
    float *parameters, *gradient, *input;
    uint64_t *draw;
    int32_t *labels;
    struct optimizer optimizer;
    float *seconds; // of this pass: layer x TIMING_PARTS
    float *all;     // PASSES_MOST x layer x TIMING_PARTS
    double last;    // when the work before ended
    double price;   // of reading the clock
};

static size_t cells(const struct trial *trial) {
    return (size_t)trial->timing->model->layer_count * TIMING_PARTS;
}

// --- what is timed ------------------------------------------------------------------

static void note(struct trial *trial, const struct layer *layer, enum timing_part part) {
    double now = clock_busy(), spent = now - trial->last - trial->price;
    trial->seconds[layer->index * TIMING_PARTS + (int)part] += (float)(spent > 0 ? spent : 0);
    trial->last = clock_busy();
}

static void layer_done(void *self, const struct layer *layer, enum net_pass pass) {
    note(self, layer, pass == NET_FORWARD ? TIMING_FORWARD : TIMING_BACKWARD);
}

static void update(void *self, const struct layer *layer, const float *gradient) {
    struct trial *trial = self;
    const struct kernels *kernels = trial->timing->kernels;
    if (optimizer_accepts(kernels, layer, gradient))
        optimizer_apply(&trial->optimizer, kernels, layer, optimizer_all(layer), trial->parameters,
                        NULL, gradient, 0);
    note(trial, layer, TIMING_UPDATE);
}

static bool update_product(void *self, const struct layer *layer, const struct dense_errors *errors,
                           const float *dbiases) {
    struct trial *trial = self;
    const struct kernels *kernels = trial->timing->kernels;
    if (!optimizer_accepts_product(kernels, errors))
        return false;
    optimizer_apply_product(&trial->optimizer, kernels, layer, trial->parameters, NULL, errors,
                            dbiases, 0);
    return true;
}

static void pass(struct trial *trial) {
    const struct timing *timing = trial->timing;
    bool train = timing->mode == NET_TRAIN;
    trial->last = clock_busy();
    net_forward(trial->net, trial->parameters, trial->input, timing->batch,
                train ? trial->draw : NULL, 1);
    if (!train)
        return;
    net_loss(trial->net, trial->labels);
    net_backward(trial->net, trial->parameters, trial->labels, 1.0f / (float)timing->batch,
                 trial->gradient, update, trial);
}

static void repeat(struct trial *trial, double seconds) {
    struct timing *timing = trial->timing;
    for (int i = 0; i < WARMING; i++)
        pass(trial);
    double begin = clock_seconds();
    while (timing->passes < PASSES_MOST &&
           (timing->passes < PASSES_LEAST || clock_seconds() - begin < seconds)) {
        trial->seconds = trial->all + (size_t)timing->passes * cells(trial);
        for (size_t i = 0; i < cells(trial); i++)
            trial->seconds[i] = 0;
        pass(trial);
        timing->passes++;
    }
}

// --- what it comes to ---------------------------------------------------------------

static int ascending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double fastest_tenth(const struct trial *trial, size_t cell, float *column) {
    int passes = trial->timing->passes;
    for (int i = 0; i < passes; i++)
        column[i] = trial->all[(size_t)i * cells(trial) + cell];
    qsort(column, (size_t)passes, sizeof *column, ascending);
    return (double)column[passes / 10];
}

static void sum_up_layer(const struct trial *trial, const struct layer *layer, float *column) {
    const struct timing *timing = trial->timing;
    struct layer_timing *to = &timing->layers[layer->index];
    bool train = timing->mode == NET_TRAIN;
    for (size_t part = 0; part < TIMING_PARTS; part++)
        to->seconds[part] =
            fastest_tenth(trial, (size_t)layer->index * TIMING_PARTS + part, column);
    uint64_t there = net_multiplies(trial->net, layer, NET_FORWARD);
    uint64_t back = train ? net_multiplies(trial->net, layer, NET_BACKWARD) : 0;
    to->flops[TIMING_FORWARD] = 2.0 * timing->batch * (double)there;
    to->flops[TIMING_BACKWARD] = 2.0 * timing->batch * (double)back;
    bool done[] = {
        [CONV_FORWARD] = true, [CONV_BACK_INPUT] = back > there, [CONV_BACK_WEIGHTS] = back > 0};
    for (int p = CONV_FORWARD; p <= CONV_BACK_WEIGHTS; p++) {
        to->bytes += done[p] ? (double)layer->weights.count * sizeof(float) : 0;
        to->ways[p] = done[p] ? net_way(trial->net, layer, (enum conv_pass)p) : NULL;
    }
    to->lanes = net_lanes(trial->net, layer);
}

static int sum_up(const struct trial *trial, struct error *err) {
    struct timing *timing = trial->timing;
    float *column = mem_array((size_t)timing->passes, sizeof *column);
    if (!column)
        return error_nomem(err);
    for (int i = 0; i < timing->model->layer_count; i++)
        sum_up_layer(trial, &timing->model->layers[i], column);
    free(column);
    return STATUS_OK;
}

// --- opening and closing ------------------------------------------------------------

static void take(struct trial *trial) {
    const struct model *model = trial->timing->model;
    size_t batch = (size_t)trial->timing->batch, in = shape_size(model_input(model)->out);
    size_t gradient = trial->timing->mode == NET_TRAIN ? model->parameter_count : 0;
    trial->parameters = arena_take(&trial->arena, model->parameter_count, sizeof(float));
    trial->gradient = arena_take(&trial->arena, gradient, sizeof(float));
    trial->input = arena_take(&trial->arena, batch * in, sizeof(float));
    trial->draw = arena_take(&trial->arena, batch, sizeof *trial->draw);
    trial->labels = arena_take(&trial->arena, batch, sizeof *trial->labels);
    trial->all = arena_take(&trial->arena, PASSES_MOST * cells(trial), sizeof *trial->all);
}

static void fill(struct trial *trial) {
    const struct model *model = trial->timing->model;
    int batch = trial->timing->batch;
    struct random random = random_stream(1, 0, 0);
    model_init(model, trial->parameters, 1);
    for (size_t i = 0; i < (size_t)batch * shape_size(model_input(model)->out); i++)
        trial->input[i] = random_normal(&random);
    for (int i = 0; i < batch; i++) {
        trial->draw[i] = (uint64_t)i;
        trial->labels[i] = (int32_t)random_below(&random, (uint32_t)model_classes(model));
    }
}

// What reading the clock takes, to be taken off.
static double clock_price(void) {
    double least = 1;
    for (int i = 0; i < 100; i++) {
        double begin = clock_busy(), price = clock_busy() - begin;
        least = price < least ? price : least;
    }
    return least;
}

static int trial_open(struct trial *trial, struct timing *timing, struct error *err) {
    *trial = (struct trial){.timing = timing, .optimizer = {.rule = RULE_SGD}};
    int status =
        net_open(&trial->net, timing->model, timing->kernels, timing->batch, timing->mode, err);
    if (status != STATUS_OK)
        return status;
    take(trial);
    if (!arena_open(&trial->arena))
        return error_nomem(err);
    take(trial);
    fill(trial);
    trial->price = clock_price();
    trial->seconds = trial->all;
    net_watched(trial->net, layer_done, trial);
    net_offered(trial->net, update_product, trial);
    return STATUS_OK;
}

static void trial_close(struct trial *trial) {
    net_close(trial->net);
    arena_close(&trial->arena);
}

int timing_run(struct timing *timing, const struct model *model, const struct kernels *kernels,
               int batch, enum net_mode mode, double seconds, struct error *err) {
    struct trial trial;
    *timing = (struct timing){.model = model, .kernels = kernels, .mode = mode, .batch = batch};
    timing->layers = mem_zeroed((size_t)model->layer_count, sizeof *timing->layers);
    if (!timing->layers)
        return error_nomem(err);
    int status = trial_open(&trial, timing, err);
    if (status == STATUS_OK) {
        timing->limits = limits_measure(kernels, trial.parameters, model->parameter_count);
        repeat(&trial, seconds);
        status = sum_up(&trial, err);
    }
    trial_close(&trial);
    return status;
}

void timing_free(struct timing *timing) {
    free(timing->layers);
    timing->layers = NULL;
}
