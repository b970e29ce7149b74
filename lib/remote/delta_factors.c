#include "remote/delta_factors.h"

#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "kernels/dense.h"
#include "remote/home_factors.h"

struct product_buffer { // products of one layer, in one half
    bool kept;
    float *errors, *inputs;
    _Atomic size_t rows; // above the room: not all were kept
};

// Threads fill one half while the other is pushed.
struct buffer_half {
    struct product_buffer *buffers; // one for each chosen layer
    _Atomic int writers;
};

struct chosen { // a layer that may go as factors
    const struct layer *layer;
    size_t units, inputs, room; // samples of a buffer
    struct exchange *push;
    struct dense_errors product; // on its way
    atomic_bool allowed;
};

struct delta_factors {
    const struct home_servers_config *config;
    struct chosen *chosen;
    int count;
    int *place; // of each layer of the model among the chosen ones; -1: it is none
    struct buffer_half halves[2];
    _Atomic int filled; // the half that threads fill
    atomic_bool keeps;  // it has room for some layer
    struct exchange *rest;
};

// --- which layers -----------------------------------------------------------------------

static bool is_exact(const struct home_servers_config *config, const struct layer *layer) {
    const struct optimizer *optimizer = config->optimizer;
    const struct update update = optimizer_weights_update(optimizer, layer, 1);
    return update.rule == RULE_SGD && optimizer->clip <= 0 && update.decay == 0;
}

static bool is_shorter(const struct chosen *chosen, uint64_t samples) {
    uint64_t weights = (uint64_t)chosen->units * chosen->inputs;
    return samples < weights / (chosen->units + chosen->inputs) + 1 &&
           samples * (chosen->units + chosen->inputs) < weights;
}

// Threads are at most two distances ahead, and each has a mini-batch in hand and one behind.
static size_t buffer_samples(const struct chosen *chosen,
                             const struct home_servers_config *config) {
    size_t even = chosen->units * chosen->inputs / (chosen->units + chosen->inputs);
    size_t room = 2 * (even + (size_t)config->threads * (size_t)config->batch);
    uint64_t most = factors_most(chosen->layer);
    return room < most ? room : most;
}

static int open_buffer(struct product_buffer *buffer, const struct chosen *chosen) {
    buffer->errors = mem_untouched_floats(chosen->room * chosen->units);
    buffer->inputs = mem_untouched_floats(chosen->room * chosen->inputs);
    return buffer->errors && buffer->inputs ? STATUS_OK : STATUS_IO;
}

static int choose_layer(struct delta_factors *factors, const struct layer *layer,
                        struct error *err) {
    const struct home_servers_config *config = factors->config;
    const struct span span = {layer->weights.offset, optimizer_all(layer).n};
    int place = factors->count++;
    struct chosen *chosen = &factors->chosen[place];
    factors->place[layer->index] = place;
    chosen->layer = layer;
    chosen->units = (size_t)layer->weights.dims[0];
    chosen->inputs = (size_t)layer->weights.dims[1];
    chosen->room = buffer_samples(chosen, config);
    for (int i = 0; i < 2; i++)
        if (open_buffer(&factors->halves[i].buffers[place], chosen))
            return error_set(err, STATUS_IO, "out of memory for the factors of layer %s",
                             layer->name);
    return exchange_open(&chosen->push, config->servers, EXCHANGE_PUSH, &span, 1, err);
}

static int choose_layers(struct delta_factors *factors, bool *taken, struct error *err) {
    const struct home_servers_config *config = factors->config;
    const struct model *model = config->model;
    bool named = strcmp(config->factors, "auto") != 0;
    int status = factors_choose(taken, model, config->factors, 1, err);
    for (int i = 0; !status && i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        bool exact = is_exact(config, layer);
        if (taken[i] && named && !exact)
            status = error_set(err, STATUS_USAGE,
                               "factors: the delta of layer '%s' is no sum of products: only that "
                               "of sgd without weight decay and clip is",
                               layer->name);
        taken[i] = taken[i] && exact;
        if (!status && taken[i])
            status = choose_layer(factors, layer, err);
    }
    return status;
}

static int open_rest(struct delta_factors *factors, const bool *taken, struct error *err) {
    const struct home_servers_config *config = factors->config;
    struct span *spans = mem_array((size_t)config->model->layer_count, sizeof *spans);
    if (!spans)
        return error_nomem(err);
    size_t count = factors_rest(taken, config->model, spans);
    int status = exchange_open(&factors->rest, config->servers, EXCHANGE_PUSH, spans, count, err);
    free(spans);
    return status;
}

static int open_parts(struct delta_factors *factors, struct error *err) {
    size_t layers = (size_t)factors->config->model->layer_count;
    bool *taken = mem_zeroed(layers, sizeof *taken);
    factors->chosen = mem_zeroed(layers, sizeof *factors->chosen);
    factors->place = mem_array(layers, sizeof *factors->place);
    for (int i = 0; i < 2; i++)
        factors->halves[i].buffers = mem_zeroed(layers, sizeof *factors->halves[i].buffers);
    int status = taken && factors->chosen && factors->place && factors->halves[0].buffers &&
                         factors->halves[1].buffers
                     ? STATUS_OK
                     : error_nomem(err);
    for (size_t i = 0; !status && i < layers; i++)
        factors->place[i] = -1;
    if (!status)
        status = choose_layers(factors, taken, err);
    if (!status)
        status = open_rest(factors, taken, err);
    free(taken);
    return status;
}

int delta_factors_open(struct delta_factors **out, const struct home_servers_config *config,
                       struct error *err) {
    struct delta_factors *factors = mem_zeroed(1, sizeof *factors);
    if (!factors)
        return error_nomem(err);
    factors->config = config;
    int status = open_parts(factors, err);
    if (!status && factors->count > 0) {
        delta_factors_change(factors);
        *out = factors;
        return STATUS_OK;
    }
    delta_factors_close(factors);
    *out = NULL;
    return status;
}

void delta_factors_close(struct delta_factors *factors) {
    if (!factors)
        return;
    exchange_close(factors->rest);
    for (int i = 0; i < factors->count; i++) {
        exchange_close(factors->chosen[i].push);
        for (int j = 0; j < 2; j++)
            free(factors->halves[j].buffers[i].errors), free(factors->halves[j].buffers[i].inputs);
    }
    free(factors->halves[0].buffers), free(factors->halves[1].buffers);
    free(factors->chosen);
    free(factors->place);
    free(factors);
}

// Servers change the rate of factors by their staleness, but not deltas.
void delta_factors_change(struct delta_factors *factors) {
    bool modulated = factors->config->protocol->modulate == MODULATE_EACH;
    for (int i = 0; i < factors->count; i++) {
        struct chosen *chosen = &factors->chosen[i];
        atomic_store(&chosen->allowed, !modulated && is_exact(factors->config, chosen->layer));
    }
}

// --- the training threads ---------------------------------------------------------------

// The half that is filled, and stays so until half_leave.
static struct buffer_half *half_enter(struct delta_factors *factors) {
    for (;;) {
        int filled = atomic_load(&factors->filled);
        struct buffer_half *half = &factors->halves[filled];
        atomic_fetch_add(&half->writers, 1);
        if (atomic_load(&factors->filled) == filled)
            return half;
        atomic_fetch_sub(&half->writers, 1);
    }
}

static void half_leave(struct buffer_half *half) {
    atomic_fetch_sub(&half->writers, 1);
}

static void copy_scaled(float *to, const float *from, size_t n, float factor) {
    for (size_t i = 0; i < n; i++)
        to[i] = factor * from[i];
}

void delta_factors_add(struct delta_factors *factors, const struct layer *layer,
                       const struct dense_errors *errors, float rate) {
    int place = factors->place[layer->index];
    if (place < 0 || !atomic_load_explicit(&factors->keeps, memory_order_relaxed))
        return;
    const struct chosen *chosen = &factors->chosen[place];
    struct buffer_half *half = half_enter(factors);
    struct product_buffer *buffer = &half->buffers[place];
    size_t n = (size_t)errors->n;
    size_t row = buffer->kept ? atomic_fetch_add(&buffer->rows, n) : chosen->room;
    if (row <= chosen->room && n <= chosen->room - row) {
        copy_scaled(buffer->errors + row * chosen->units, errors->dy, n * chosen->units, rate);
        memcpy(buffer->inputs + row * chosen->inputs, errors->x,
               n * chosen->inputs * sizeof *errors->x);
    }
    half_leave(half);
}

void delta_factors_spoil(struct delta_factors *factors, const struct layer *layer) {
    int place = factors->place[layer->index];
    if (place < 0 || !atomic_load_explicit(&factors->keeps, memory_order_relaxed))
        return;
    struct buffer_half *half = half_enter(factors);
    atomic_fetch_add(&half->buffers[place].rows, factors->chosen[place].room + 1);
    half_leave(half);
}

// --- the exchanging thread --------------------------------------------------------------

static struct product_buffer *taken_buffer(struct delta_factors *factors, int place) {
    return &factors->halves[!atomic_load(&factors->filled)].buffers[place];
}

static bool has_room(struct delta_factors *factors, int place) {
    struct product_buffer *buffer = taken_buffer(factors, place);
    return buffer->kept && atomic_load(&buffer->rows) <= factors->chosen[place].room;
}

bool delta_factors_take(struct delta_factors *factors, uint64_t samples) {
    int before = atomic_load(&factors->filled);
    struct buffer_half *next = &factors->halves[!before];
    bool keeps = false, any = false;
    for (int i = 0; i < factors->count; i++) {
        const struct chosen *chosen = &factors->chosen[i];
        next->buffers[i].kept = atomic_load(&chosen->allowed) && is_shorter(chosen, samples);
        atomic_store(&next->buffers[i].rows, 0);
        keeps |= next->buffers[i].kept;
    }
    atomic_store(&factors->filled, !before);
    atomic_store(&factors->keeps, keeps);
    while (atomic_load(&factors->halves[before].writers) > 0)
        sched_yield();
    for (int i = 0; i < factors->count; i++)
        any |= has_room(factors, i);
    return any;
}

bool delta_factors_keeps(const struct delta_factors *factors) {
    return atomic_load(&factors->keeps);
}

// The error gradients bring their rates.
static void push_products(struct delta_factors *factors, int place, const struct push *values) {
    struct chosen *chosen = &factors->chosen[place];
    struct product_buffer *buffer = taken_buffer(factors, place);
    if (atomic_load(&buffer->rows) == 0)
        return;
    chosen->product = (struct dense_errors){
        .dy = buffer->errors,
        .x = buffer->inputs,
        .n = (int)atomic_load(&buffer->rows),
        .units = (int)chosen->units,
        .inputs = (int)chosen->inputs,
    };
    const struct push_factors push = {
        .layer = chosen->layer,
        .errors = &chosen->product,
        .rate = 1,
        .stamps = values->stamps,
        .growth = values->growth,
    };
    exchange_push_factors(chosen->push, &push);
}

void delta_factors_push(struct delta_factors *factors, const struct push *values) {
    exchange_push(factors->rest, values);
    for (int i = 0; i < factors->count; i++) {
        if (has_room(factors, i))
            push_products(factors, i, values);
        else
            exchange_push(factors->chosen[i].push, values);
    }
}

struct exchange *delta_factors_exchange(struct delta_factors *factors, int at) {
    return at == 0 ? factors->rest : at <= factors->count ? factors->chosen[at - 1].push : NULL;
}
