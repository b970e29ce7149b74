// How a partition passes its part of a mini-batch: forward, loss, back, and then the gradients of
// weights that others have, too, are added up.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "kernels/kernels.h"
#include "train/flights.h"

static const struct loop_config *config_of(const struct leg *leg) {
    return &leg->thread->loop->config;
}

static const struct flights *flights_of(const struct leg *leg) {
    return leg->thread->loop->flights;
}

static int partition_of(const struct leg *leg) {
    return flights_of(leg)->first + leg->thread->index;
}

static const struct model *model_of(const struct leg *leg) {
    return cut_model(flights_of(leg)->cut, partition_of(leg));
}

static const float *weights_of(const struct leg *leg) {
    struct home *home = config_of(leg)->home;
    return home->ops->weights(home, leg->thread->index);
}

static void add_gradient(const struct leg *leg, const struct layer *layer, const float *gradient) {
    struct home *home = config_of(leg)->home;
    home->ops->add(home, leg->thread->index, layer, optimizer_all(layer), gradient,
                   leg->flight->rate);
}

// Whether all gradients are there before any is applied: those of all parts of the mini-batch are
// added up, or the lengths of whole layers' are looked at.
static bool waits_for_all(const struct leg *leg) {
    return config_of(leg)->sync || config_of(leg)->optimizer->clip > 0;
}

static bool has_sums(const struct leg *leg) {
    return leg->flight->batch->n > 0 && (waits_for_all(leg) || leg->gradients > 0);
}

// --- a layer's gradient is there ----------------------------------------------------------

// Whether others have the layer's weights, too.
static bool is_shared(const struct leg *leg, const struct layer *layer) {
    int count;
    const struct cut_sum *sums = cut_sums(flights_of(leg)->cut, partition_of(leg), &count);
    for (int i = 0; i < count; i++)
        if (sums[i].layer == layer->index)
            return true;
    return false;
}

static void layer_ready(void *self, const struct layer *layer, const float *gradient) {
    struct leg *leg = ((struct chunk *)self)->leg;
    if (leg->refused || is_shared(leg, layer))
        return;
    if (optimizer_accepts(config_of(leg)->kernels, layer, gradient))
        add_gradient(leg, layer, gradient);
    else
        leg->refused = true;
}

static bool layer_offered(void *self, const struct layer *layer, const struct dense_errors *errors,
                          const float *dbiases) {
    struct leg *leg = ((struct chunk *)self)->leg;
    struct home *home = config_of(leg)->home;
    if (leg->refused || is_shared(leg, layer) || !home->products->takes(home, layer, false) ||
        !optimizer_accepts_product(config_of(leg)->kernels, errors))
        return false;
    home->products->add(home, leg->thread->index, layer, errors, dbiases, 0, leg->flight->rate);
    return true;
}

// --- passes -------------------------------------------------------------------------------

static void begin_forward(struct chunk *chunk) {
    struct leg *leg = chunk->leg;
    const struct batch *batch = leg->flight->batch;
    int first = chunk->first + chunk->at, most = flights_of(leg)->most;
    size_t sample = net_sample(chunk->net);
    chunk->some = chunk->n - chunk->at < most ? chunk->n - chunk->at : most;
    chunk->phase = CHUNK_FORWARD;
    net_begin_forward(chunk->net, weights_of(leg),
                      partition_of(leg) == 0 ? batch->input + (size_t)first * sample : NULL,
                      chunk->some, batch->draw + first, config_of(leg)->seed);
}

static void begin_backward(struct chunk *chunk) {
    struct leg *leg = chunk->leg;
    const struct batch *batch = leg->flight->batch;
    int first = chunk->first + chunk->at, outputs = model_classes(config_of(leg)->model);
    bool last = chunk->at + chunk->some == chunk->n;
    net_mixed(chunk->net, batch->other ? batch->other + first : NULL,
              batch->share ? batch->share + first : NULL);
    net_targets(chunk->net, batch_target(batch, first, outputs));
    double loss = net_loss(chunk->net, batch->label + first);
    leg->flight->losses[leg->thread->index] += loss;
    leg->refused |= !isfinite(loss);
    net_adds(chunk->net, chunk->at > 0);
    net_offered(chunk->net, !waits_for_all(leg) && chunk->some == batch->n ? layer_offered : NULL,
                chunk);
    net_begin_backward(chunk->net, weights_of(leg), batch->label + first, 1.0f / (float)batch->n,
                       chunk->gradient, last && !waits_for_all(leg) ? layer_ready : NULL, chunk);
    chunk->phase = CHUNK_BACKWARD;
}

// True: a pass is done.
static bool go_on(struct chunk *chunk) {
    if (chunk->phase == CHUNK_DONE || !net_go(chunk->net))
        return false;
    if (chunk->phase == CHUNK_FORWARD) {
        begin_backward(chunk);
        return true;
    }
    chunk->at += chunk->some;
    if (chunk->at < chunk->n)
        begin_forward(chunk);
    else
        chunk->phase = CHUNK_DONE;
    return true;
}

// --- sums ---------------------------------------------------------------------------------

// Adds the gradients of all parts to that of the first, in their order.
static void add_up_chunks(const struct leg *leg) {
    const struct model *model = model_of(leg);
    for (int c = 1; c < flights_of(leg)->chunks; c++)
        for (int i = 0; leg->chunks[c].n > 0 && i < model->layer_count; i++) {
            const struct layer *layer = &model->layers[i];
            size_t at = layer->weights.offset;
            if (layer_learns(layer))
                config_of(leg)->kernels->axpy(leg->chunks[0].gradient + at,
                                              leg->chunks[c].gradient + at, layer_parameters(layer),
                                              1);
        }
}

static float layer_squares(const struct leg *leg, const struct layer *layer,
                           const float *gradient) {
    return (float)optimizer_length_squares(config_of(leg)->kernels, layer, optimizer_all(layer),
                                           gradient);
}

// Of what no other has: the squares of the whole layer's gradient, and whether it is finite.
static void put_own_layers(const struct leg *leg, float *squares, float *bad) {
    const struct model *model = model_of(leg);
    const struct kernels *kernels = config_of(leg)->kernels;
    for (int i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        const float *gradient = leg->chunks[0].gradient + layer->weights.offset;
        if (!layer_learns(layer) || is_shared(leg, layer))
            continue;
        *bad += optimizer_accepts(kernels, layer, gradient) ? 0 : 1;
        squares[layer->stream] += layer_squares(leg, layer, gradient);
    }
}

static void put_shared_layers(const struct leg *leg, float *to) {
    int count;
    const struct cut_sum *sums = cut_sums(flights_of(leg)->cut, partition_of(leg), &count);
    const struct model *model = model_of(leg);
    for (int i = 0; i < count; i++)
        if (sums[i].layer >= 0)
            memcpy(to + sums[i].at,
                   leg->chunks[0].gradient + model->layers[sums[i].layer].weights.offset,
                   sums[i].n * sizeof *to);
}

// Shared gradients, squares, and whether something is not finite.
static void begin_sums(struct leg *leg) {
    float *own = leg->sums.floats;
    memset(own, 0, leg->sums.count * sizeof *own);
    if (waits_for_all(leg)) {
        add_up_chunks(leg);
        put_own_layers(leg, own + leg->gradients, &own[leg->sums.count - 1]);
    }
    own[leg->sums.count - 1] += leg->refused ? 1 : 0;
    put_shared_layers(leg, own);
    sums_begin(&leg->sums);
    leg->phase = LEG_SUMS;
}

// Squares of the gradients that were added up, by whole layers.
static void put_shared_squares(const struct leg *leg) {
    int count;
    const struct cut_sum *sums = cut_sums(flights_of(leg)->cut, partition_of(leg), &count);
    float *squares = leg->sums.floats + leg->gradients;
    for (int i = 0; i < count; i++) {
        const struct layer *layer =
            sums[i].layer < 0 ? NULL : &model_of(leg)->layers[sums[i].layer];
        if (layer)
            squares[layer->stream] = layer_squares(leg, layer, leg->sums.floats + sums[i].at);
    }
}

static void apply_layer(const struct leg *leg, const struct layer *layer, float *gradient) {
    float squares = leg->sums.floats[leg->gradients + (size_t)layer->stream];
    optimizer_shorten(layer, optimizer_all(layer), gradient,
                      optimizer_clip_factor(config_of(leg)->optimizer, (double)squares));
    add_gradient(leg, layer, gradient);
}

static void apply_shared(const struct leg *leg) {
    int count;
    const struct cut_sum *sums = cut_sums(flights_of(leg)->cut, partition_of(leg), &count);
    for (int i = 0; i < count; i++)
        if (sums[i].layer >= 0)
            apply_layer(leg, &model_of(leg)->layers[sums[i].layer], leg->sums.floats + sums[i].at);
}

static void apply_own(const struct leg *leg) {
    const struct model *model = model_of(leg);
    for (int i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        if (layer_learns(layer) && !is_shared(leg, layer))
            apply_layer(leg, layer, leg->chunks[0].gradient + layer->weights.offset);
    }
}

static void apply_sums(struct leg *leg) {
    const struct kernels *kernels = config_of(leg)->kernels;
    leg->refused |= !(leg->sums.floats[leg->sums.count - 1] <= 0) ||
                    !kernels->finite(leg->sums.floats, leg->sums.count);
    if (leg->refused)
        return;
    put_shared_squares(leg);
    apply_shared(leg);
    if (waits_for_all(leg))
        apply_own(leg);
}

// --- legs ---------------------------------------------------------------------------------

static bool is_announced(const struct leg *leg) {
    return atomic_load(&flights_of(leg)->announced) > leg->number;
}

// The parts of a mini-batch; the last may be short, or empty.
static void begin(struct leg *leg) {
    int chunks = flights_of(leg)->chunks, all = leg->flight->batch->n;
    int each = flights_each(flights_of(leg), config_of(leg)->model, all);
    leg->phase = LEG_PASSES;
    leg->refused = false;
    leg->flight->losses[leg->thread->index] = 0;
    for (int c = 0, first = 0; c < chunks; c++, first += each) {
        struct chunk *chunk = &leg->chunks[c];
        int left = all > first ? all - first : 0;
        chunk->first = first, chunk->n = left < each ? left : each, chunk->at = 0;
        chunk->phase = CHUNK_DONE;
        if (chunk->n > 0)
            begin_forward(chunk);
    }
}

static bool passes_done(const struct leg *leg) {
    for (int c = 0; c < flights_of(leg)->chunks; c++)
        if (leg->chunks[c].phase != CHUNK_DONE)
            return false;
    return true;
}

static void end(struct leg *leg) {
    const struct flights *flights = flights_of(leg);
    struct flight *flight = leg->flight;
    struct home *home = config_of(leg)->home;
    if (leg->refused) {
        atomic_store(&flight->refused, true);
        loop_diverge(leg->thread, flight->batch, NAN);
        flights_wake(flights);
    } else if (flight->batch->n > 0) {
        home->ops->add_clock(home, leg->thread->index, flight->batch->n);
    }
    leg->phase = LEG_WAITS;
    leg->number += (uint64_t)flights->count;
    if (atomic_fetch_sub(&flight->left, 1) == 1)
        gate_open(flights_gate(flights, 0));
}

// The first part that can, as flights do (train/loop_partitions.c).
static bool go_first(struct leg *leg) {
    for (int c = 0; c < flights_of(leg)->chunks; c++)
        if (go_on(&leg->chunks[c]))
            return true;
    return false;
}

static bool pass_on(struct leg *leg) {
    if (go_first(leg))
        return true;
    if (!passes_done(leg) || (has_sums(leg) && !sums_idle(&leg->sums)))
        return false;
    if (has_sums(leg))
        begin_sums(leg);
    else
        end(leg);
    return true;
}

bool leg_go(struct leg *leg) {
    switch (leg->phase) {
    case LEG_WAITS:
        if (!is_announced(leg))
            return false;
        begin(leg);
        return true;
    case LEG_PASSES:
        return pass_on(leg);
    case LEG_SUMS:
        if (!sums_go(&leg->sums))
            return false;
        apply_sums(leg);
        end(leg);
        return true;
    }
    return false;
}

// --- their memory -------------------------------------------------------------------------

static int open_chunk(struct chunk *chunk, struct leg *leg, int slot, struct error *err) {
    const struct flights *flights = flights_of(leg);
    const struct model *model = model_of(leg);
    chunk->leg = leg;
    int status =
        net_open(&chunk->net, model, config_of(leg)->kernels, flights->most, NET_TRAIN, err);
    if (status)
        return status;
    net_wired(chunk->net, flights_wire(flights, leg->thread->index, slot));
    chunk->gradient = mem_untouched_floats(model->parameter_count + 1);
    return chunk->gradient ? STATUS_OK : error_nomem(err);
}

static int open_sums(struct leg *leg, int slot, struct error *err) {
    const struct flights *flights = flights_of(leg);
    const struct loop_config *config = config_of(leg);
    leg->gradients = cut_sum_floats(flights->cut);
    return sums_open(&leg->sums, flights_wire(flights, leg->thread->index, slot),
                     cut_exchanges(flights->cut), partition_of(leg), cut_partitions(flights->cut),
                     leg->gradients + (size_t)config->model->layer_count + 1, config->kernels, err);
}

static int open_leg(struct leg *leg, struct loop_thread *thread, int number, struct error *err) {
    const struct flights *flights = thread->loop->flights;
    int slot = number * flights->chunks;
    *leg = (struct leg){.thread = thread,
                        .flight = &flights->flight[number],
                        .number = (uint64_t)number,
                        .chunks = mem_zeroed((size_t)flights->chunks, sizeof *leg->chunks)};
    int status = leg->chunks ? STATUS_OK : error_nomem(err);
    for (int c = 0; !status && c < flights->chunks; c++)
        status = open_chunk(&leg->chunks[c], leg, slot + c, err);
    return status ? status : open_sums(leg, slot, err);
}

int legs_open(struct leg **out, struct loop_thread *thread, struct error *err) {
    const struct flights *flights = thread->loop->flights;
    int status = STATUS_OK;
    *out = mem_zeroed((size_t)flights->count, sizeof **out);
    if (!*out)
        return error_nomem(err);
    for (int i = 0; !status && i < flights->count; i++)
        status = open_leg(&(*out)[i], thread, i, err);
    return status;
}

void legs_close(struct leg *legs, const struct flights *flights) {
    for (int i = 0; legs && i < flights->count; i++) {
        for (int c = 0; legs[i].chunks && c < flights->chunks; c++) {
            net_close(legs[i].chunks[c].net);
            free(legs[i].chunks[c].gradient);
        }
        free(legs[i].chunks);
        sums_close(&legs[i].sums);
    }
    free(legs);
}
