#include "rule/optimizer.h"

#include <float.h>
#include <math.h>

#include "kernels/dense.h"
#include "kernels/kernels.h"

const char *const rule_names[] = {"sgd", "momentum", "adagrad", NULL};

const char *optimizer_state_name(enum rule rule) {
    return rule == RULE_SGD ? NULL : rule_names[rule];
}

// Where the biases' part of a layer's gradient begins.
static size_t biases_at(const struct layer *layer) {
    return layer->biases.offset - layer->weights.offset;
}

bool optimizer_accepts(const struct kernels *kernels, const struct layer *layer,
                       const float *gradient) {
    return kernels->finite(gradient, layer->weights.count) &&
           kernels->finite(gradient + biases_at(layer), layer->biases.count);
}

// No sum of n products is more than n times the largest (NaN is no number less than
// any); nor is a bias's sum of error gradients, whose inputs are 1.
bool optimizer_accepts_product(const struct kernels *kernels, const struct dense_errors *errors) {
    size_t n = (size_t)errors->n;
    double error = (double)kernels->largest(errors->dy, n * (size_t)errors->units);
    double input = (double)kernels->largest(errors->x, n * (size_t)errors->inputs);
    return error * (input + 1) * (double)n < (double)FLT_MAX;
}

void optimizer_scale(float *gradient, size_t n, float factor) {
    for (size_t i = 0; i < n; i++)
        gradient[i] *= factor;
}

float optimizer_clip_factor(const struct optimizer *optimizer, double squares) {
    double norm = sqrt(squares), most = (double)optimizer->clip;
    return optimizer->clip > 0 && norm > most ? (float)(most / norm) : 1;
}

void optimizer_clip(const struct optimizer *optimizer, const struct kernels *kernels,
                    const struct layer *layer, float *gradient) {
    if (optimizer->clip <= 0)
        return;
    float *biases = gradient + biases_at(layer);
    float factor =
        optimizer_clip_factor(optimizer, kernels->sum_squares(gradient, layer->weights.count) +
                                             kernels->sum_squares(biases, layer->biases.count));
    if (factor >= 1)
        return;
    optimizer_scale(gradient, layer->weights.count, factor);
    optimizer_scale(biases, layer->biases.count, factor);
}

struct span optimizer_all(const struct layer *layer) {
    return (struct span){0, biases_at(layer) + layer->biases.count};
}

// What of `span` lies in [first, first + n).
static struct span span_overlap(struct span span, size_t first, size_t n) {
    size_t begin = span.first > first ? span.first : first;
    size_t end = span.first + span.n < first + n ? span.first + span.n : first + n;
    return (struct span){begin, end > begin ? end - begin : 0};
}

static struct update of_learners(struct update update, unsigned learners) {
    if (learners <= 1)
        return update;
    float momentum = powf(update.momentum, (float)learners), root = sqrtf((float)learners);
    if (update.rule == RULE_MOMENTUM && update.momentum < 1) {
        update.rate *= (1 - momentum) / (1 - update.momentum);
        update.momentum = momentum;
    } else if (update.rule == RULE_ADAGRAD) {
        update.rate /= root;
        update.epsilon /= root;
    }
    return update;
}

struct update optimizer_weights_update(const struct optimizer *optimizer, const struct layer *layer,
                                       float rate) {
    const struct update update = {
        .rule = optimizer->rule,
        .rate = rate * layer->rate,
        .decay = layer->decay < 0 ? optimizer->decay : layer->decay,
        .momentum = optimizer->momentum,
        .epsilon = optimizer->epsilon,
    };
    return of_learners(update, optimizer->learners);
}

struct update optimizer_biases_update(const struct optimizer *optimizer, const struct layer *layer,
                                      float rate) {
    struct update update = optimizer_weights_update(optimizer, layer, rate);
    update.decay = 0;
    return update;
}

static float *offset_or_null(float *array, size_t offset) {
    return array ? array + offset : NULL;
}

void optimizer_apply(const struct optimizer *optimizer, const struct kernels *kernels,
                     const struct layer *layer, struct span span, float *parameters, float *state,
                     const float *gradient, float rate) {
    struct update weights = optimizer_weights_update(optimizer, layer, rate);
    struct update biases = optimizer_biases_update(optimizer, layer, rate);
    struct span w = span_overlap(span, 0, layer->weights.count);
    struct span b = span_overlap(span, biases_at(layer), layer->biases.count);
    size_t begin = layer->weights.offset;
    kernels->update(parameters + begin + w.first, offset_or_null(state, begin + w.first),
                    gradient + w.first, w.n, &weights);
    kernels->update(parameters + begin + b.first, offset_or_null(state, begin + b.first),
                    gradient + b.first, b.n, &biases);
}

void optimizer_apply_product(const struct optimizer *optimizer, const struct kernels *kernels,
                             const struct layer *layer, float *parameters, float *state,
                             const struct dense_errors *errors, const float *dbiases, float rate) {
    const struct parameter *w = &layer->weights, *b = &layer->biases;
    struct update weights = optimizer_weights_update(optimizer, layer, rate);
    struct update biases = optimizer_biases_update(optimizer, layer, rate);
    kernels->dense->step(parameters + w->offset, offset_or_null(state, w->offset), errors,
                         &weights);
    kernels->update(parameters + b->offset, offset_or_null(state, b->offset), dbiases, b->count,
                    &biases);
}
