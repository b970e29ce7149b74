// The loss of samples that have targets of their own, a number for each output: those of several
// classes at once, and those of regression.
#include <math.h>

#include "model/net_inside.h"

void net_targets(struct net *net, const float *targets) {
    net->targets = targets;
}

int net_outputs(const struct net *net) {
    return model_classes(net->model);
}

bool net_has_targets(const struct net *net) {
    return net->targets || model_goal(net->model) == GOAL_NUMBERS;
}

// Of output c of the whole model.
static float target_of(const struct net *net, const int32_t *labels, int i, int c) {
    int outputs = model_output(net->model)->whole.c;
    return net->targets ? net->targets[(size_t)i * (size_t)outputs + (size_t)c] : labels[i] == c;
}

static bool counts(const struct net *net, const int32_t *labels, int i) {
    return net->targets || (labels[i] >= 0 && labels[i] < model_output(net->model)->whole.c);
}

// --- one output ---------------------------------------------------------------------------

// Its loss and the slope of that.
struct cost {
    double loss;
    float slope;
};

// "r^2 / 2 for |r| up to delta, delta (|r| - delta / 2) beyond" (Huber 1964).
static struct cost number_cost(const struct layer *layer, float error) {
    float outputs = (float)layer->whole.c, delta = layer->delta, size = fabsf(error);
    if (layer->loss == LOSS_SQUARED)
        return (struct cost){(double)error * (double)error / (double)outputs, 2 * error / outputs};
    if (size <= delta)
        return (struct cost){(double)error * (double)error / 2 / (double)outputs, error / outputs};
    return (struct cost){(double)delta * ((double)size - (double)delta / 2) / (double)outputs,
                         copysignf(delta, error) / outputs};
}

// Smoothed and weighted in training.
static struct cost class_cost(const struct net *net, int c, float score, float term, float target) {
    const struct layer *layer = model_output(net->model);
    bool trains = net->mode == NET_TRAIN;
    float weight = trains && layer->class_weights.at ? layer->class_weights.at[c] : 1;
    if (trains)
        target = target * (1 - layer->smoothing) + layer->smoothing / 2;
    return (struct cost){(double)weight * net_term_loss(true, term, target),
                         weight * (score - target)};
}

// Of output `own` of those that the net has.
static struct cost cost_of(const struct net *net, const int32_t *labels, int i, int own) {
    const struct layer *layer = model_output(net->model);
    size_t at = (size_t)i * (size_t)model_classes(net->model) + (size_t)own;
    int c = layer->region.c0 + own;
    float score = net_scores(net)[at];
    float target = target_of(net, labels, i, c);
    return layer->type->goal == GOAL_NUMBERS
               ? number_cost(layer, score - target)
               : class_cost(net, c, score, net_terms(net)[at], target);
}

// --- all of them --------------------------------------------------------------------------

double net_target_loss(const struct net *net, const int32_t *labels) {
    int outputs = model_classes(net->model);
    double loss = 0;
    for (int i = 0; i < net->n; i++)
        for (int c = 0; c < outputs && counts(net, labels, i); c++)
            loss += cost_of(net, labels, i, c).loss;
    return loss;
}

void net_target_error(struct net *net, const int32_t *labels, float scale) {
    int outputs = model_classes(net->model);
    float *error = net_output_node(net)->pass.dy;
    for (int i = 0; i < net->n; i++, error += outputs)
        for (int c = 0; c < outputs; c++)
            error[c] = counts(net, labels, i) ? scale * cost_of(net, labels, i, c).slope : 0;
}
