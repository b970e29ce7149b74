#include "train/optimizer.h"

#include <math.h>

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

static void scale(float *x, size_t n, float factor) {
    for (size_t i = 0; i < n; i++)
        x[i] *= factor;
}

void optimizer_clip(const struct optimizer *optimizer, const struct kernels *kernels,
                    const struct layer *layer, float *gradient) {
    if (optimizer->clip <= 0)
        return;
    float *biases = gradient + biases_at(layer);
    double norm = sqrt(kernels->sum_squares(gradient, layer->weights.count) +
                       kernels->sum_squares(biases, layer->biases.count));
    if (norm <= (double)optimizer->clip)
        return;
    float factor = (float)((double)optimizer->clip / norm);
    scale(gradient, layer->weights.count, factor);
    scale(biases, layer->biases.count, factor);
}

static void apply(const struct optimizer *optimizer, const struct kernels *kernels, float *w,
                  float *state, const float *g, size_t n, float rate, float decay) {
    switch (optimizer->rule) {
    case RULE_SGD:
        kernels->sgd(w, g, n, rate, decay);
        return;
    case RULE_MOMENTUM:
        kernels->momentum(w, state, g, n, rate, optimizer->momentum, decay);
        return;
    case RULE_ADAGRAD:
        kernels->adagrad(w, state, g, n, rate, decay, optimizer->epsilon);
        return;
    }
}

void optimizer_apply(const struct optimizer *optimizer, const struct kernels *kernels,
                     const struct layer *layer, float *parameters, float *state,
                     const float *gradient, float rate) {
    const struct parameter *w = &layer->weights, *b = &layer->biases;
    float decay = layer->decay < 0 ? optimizer->decay : layer->decay;
    rate *= layer->rate;
    apply(optimizer, kernels, parameters + w->offset, state ? state + w->offset : NULL, gradient,
          w->count, rate, decay);
    apply(optimizer, kernels, parameters + b->offset, state ? state + b->offset : NULL,
          gradient + biases_at(layer), b->count, rate, 0);
}
