#include "measure/timing.h"

#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "measure/trial.h"
#include "model/layer.h"

enum {
    PASSES_MOST = 2000,
    PASSES_LEAST = 5,
    WARMING = 2, // passes before the first that counts: caches, pages, clock rates
};

// Of this thread alone, on weights that nobody shares.
struct timer {
    struct timing *timing;
    struct trial trial;
    struct optimizer optimizer;
    struct home *home;
    float *parameters;
    float *all;     // PASSES_MOST x layer x TIMING_PARTS
    float *seconds; // of this pass: layer x TIMING_PARTS
    double last;    // when the work before ended
    double price;   // of reading the clock
};

static size_t cell_count(const struct timer *timer) {
    return (size_t)timer->timing->model->layer_count * TIMING_PARTS;
}

// --- what is timed ------------------------------------------------------------------

static void add_time(struct timer *timer, const struct layer *layer, enum timing_part part) {
    double now = clock_busy(), spent = now - timer->last - timer->price;
    timer->seconds[layer->index * TIMING_PARTS + (int)part] += (float)(spent > 0 ? spent : 0);
    timer->last = clock_busy();
}

static void layer_done(void *self, const struct layer *layer, enum net_pass pass) {
    add_time(self, layer, pass == NET_FORWARD ? TIMING_FORWARD : TIMING_BACKWARD);
}

static void layer_added(void *self, const struct layer *layer, const float *gradient) {
    (void)gradient;
    add_time(self, layer, TIMING_UPDATE);
}

static bool timed_pass(struct timer *timer) {
    timer->last = clock_busy();
    return trial_pass(&timer->trial);
}

static int repeat_passes(struct timer *timer, double seconds, struct error *err) {
    struct timing *timing = timer->timing;
    bool whole = true;
    for (int i = 0; i < WARMING; i++)
        whole &= timed_pass(timer);
    double begin = clock_seconds();
    while (timing->passes < PASSES_MOST &&
           (timing->passes < PASSES_LEAST || clock_seconds() - begin < seconds)) {
        timer->seconds = timer->all + (size_t)timing->passes * cell_count(timer);
        for (size_t i = 0; i < cell_count(timer); i++)
            timer->seconds[i] = 0;
        whole &= timed_pass(timer);
        timing->passes++;
    }
    return whole ? STATUS_OK
                 : error_set(err, STATUS_DATA,
                             "%s: the loss or a gradient of random samples is not finite",
                             timing->model->name);
}

// --- what it comes to ---------------------------------------------------------------

static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double fastest_tenth(const struct timer *timer, size_t cell, float *column) {
    int passes = timer->timing->passes;
    for (int i = 0; i < passes; i++)
        column[i] = timer->all[(size_t)i * cell_count(timer) + cell];
    qsort(column, (size_t)passes, sizeof *column, compare_floats);
    return (double)column[passes / 10];
}

// Of a layer's weights, or of what is kept of them instead where that is less.
static double weight_bytes(const struct timer *timer, const struct layer *layer) {
    const struct trial *trial = &timer->trial;
    size_t weights = layer->weights.count, kept = 0;
    if (trial->prepared && prepared_kept(trial->prepared, layer))
        kept = layer->type->kept_size(layer, trial->solo.kernels, timer->timing->batch);
    return sizeof(float) * (double)(kept > 0 && kept < weights ? kept : weights);
}

static void sum_up_layer(const struct timer *timer, const struct layer *layer, float *column) {
    const struct timing *timing = timer->timing;
    struct layer_timing *to = &timing->layers[layer->index];
    for (size_t part = 0; part < TIMING_PARTS; part++)
        to->seconds[part] =
            fastest_tenth(timer, (size_t)layer->index * TIMING_PARTS + part, column);
    for (int p = NET_FORWARD; p <= NET_BACKWARD; p++)
        to->flops[p] = timing->batch * trial_flops(&timer->trial, layer, (enum net_pass)p);
    double there = to->flops[TIMING_FORWARD], back = to->flops[TIMING_BACKWARD];
    bool done[] = {
        [CONV_FORWARD] = true, [CONV_BACK_INPUT] = back > there, [CONV_BACK_WEIGHTS] = back > 0};
    for (int p = CONV_FORWARD; p <= CONV_BACK_WEIGHTS; p++) {
        to->bytes += done[p] ? weight_bytes(timer, layer) : 0;
        to->ways[p] = done[p] ? net_way(timer->trial.solo.net, layer, (enum conv_pass)p) : NULL;
    }
    to->lanes = net_lanes(timer->trial.solo.net, layer);
}

static int sum_up(const struct timer *timer, struct error *err) {
    struct timing *timing = timer->timing;
    float *column = mem_array((size_t)timing->passes, sizeof *column);
    if (!column)
        return error_nomem(err);
    for (int i = 0; i < timing->model->layer_count; i++)
        sum_up_layer(timer, &timing->model->layers[i], column);
    free(column);
    return STATUS_OK;
}

// --- opening and closing ------------------------------------------------------------

// What reading the clock takes, to be taken off.
static double clock_price(void) {
    double least = 1;
    for (int i = 0; i < 100; i++) {
        double begin = clock_busy(), price = clock_busy() - begin;
        least = price < least ? price : least;
    }
    return least;
}

static int timer_open(struct timer *timer, struct timing *timing, struct error *err) {
    const struct model *model = timing->model;
    *timer = (struct timer){.timing = timing, .optimizer = {.rule = RULE_SGD}};
    timer->parameters = mem_floats(model->parameter_count);
    timer->all = mem_array(PASSES_MOST * cell_count(timer), sizeof *timer->all);
    if (!timer->parameters || !timer->all)
        return error_nomem(err);
    model_init_lively(model, timer->parameters, 1);
    const struct home_config config = {
        .model = model,
        .optimizer = &timer->optimizer,
        .kernels = timing->kernels,
        .parameters = timer->parameters,
        .threads = 1,
        .batch = timing->batch,
    };
    int status = home_local(&timer->home, &config, err);
    if (status)
        return status;
    timer->trial = (struct trial){.solo = {.kernels = timing->kernels,
                                           .optimizer = &timer->optimizer,
                                           .home = timer->home,
                                           .added = layer_added,
                                           .added_self = timer},
                                  .mode = timing->mode};
    status = trial_open(&timer->trial, model, timing->batch, 1, err);
    if (status)
        return status;
    timer->price = clock_price();
    timer->seconds = timer->all;
    net_watched(timer->trial.solo.net, layer_done, timer);
    return STATUS_OK;
}

static void timer_close(struct timer *timer) {
    trial_close(&timer->trial);
    if (timer->home)
        timer->home->ops->close(timer->home);
    free(timer->parameters);
    free(timer->all);
}

int timing_run(struct timing *timing, const struct model *model, const struct kernels *kernels,
               int batch, enum net_mode mode, double seconds, struct error *err) {
    struct timer timer;
    *timing = (struct timing){.model = model, .kernels = kernels, .mode = mode, .batch = batch};
    timing->layers = mem_zeroed((size_t)model->layer_count, sizeof *timing->layers);
    if (!timing->layers)
        return error_nomem(err);
    int status = timer_open(&timer, timing, err);
    if (status == STATUS_OK) {
        timing->limits = limits_measure(kernels, timer.parameters, model->parameter_count);
        status = repeat_passes(&timer, seconds, err);
        if (status == STATUS_OK)
            status = sum_up(&timer, err);
    }
    timer_close(&timer);
    return status;
}

void timing_free(struct timing *timing) {
    free(timing->layers);
    timing->layers = NULL;
}
