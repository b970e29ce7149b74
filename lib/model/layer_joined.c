// Layers by which partitions join what each has of a layer: biases and activation of sums that were
// added up, and the outputs of the model.
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "model/pass.h"

// --- biases -----------------------------------------------------------------------------

static void scratch_biases(const struct layer *layer, int n, bool train, size_t *kept,
                           size_t *brief) {
    *kept = pass_kept_size(layer, n, train);
    *brief = pass_mask_size(layer, n, train);
}

static void forward_biases(const struct pass *pass) {
    memcpy(pass->y, pass->x[0], pass_outputs(pass) * sizeof *pass->y);
    pass->kernels->bias_add(pass->y, pass->biases, pass->n, pass->layer->out.c, 1);
    pass_activate(pass, pass->kept);
}

static void backward_biases(const struct pass *pass) {
    pass_activate_back(pass, pass->kept);
    if (layer_learns(pass->layer))
        pass->kernels->bias_sum(pass->dbiases, pass->dy, pass->n, pass->layer->out.c, 1);
    if (pass->dx[0])
        memcpy(pass->dx[0], pass->dy, pass_outputs(pass) * sizeof *pass->dy);
}

const struct layer_type layer_biases = {
    .name = "biases",
    .what = "the biases and the activation of a layer that is cut by inputs",
    .trains = true,
    .inputs_most = 1,
    .acts = ACTS_ALL,
    .scratch = scratch_biases,
    .forward = forward_biases,
    .backward = backward_biases,
};

// --- softmax ----------------------------------------------------------------------------

// Of each sample the largest sum of the partition's classes, and what the exponentials of their
// distances from it add up to: "softmax by units", of which these are exchanged.
enum { LARGEST, TOTAL, EXTREMES };

static void scratch_extremes(const struct layer *layer, int n, bool train, size_t *kept,
                             size_t *brief) {
    (void)train, (void)kept;
    *brief = (size_t)n * (size_t)layer->in.c;
}

static float largest_of(const float *values, int count) {
    float largest = values[0];
    for (int i = 1; i < count; i++)
        largest = values[i] > largest ? values[i] : largest;
    return largest;
}

// The probability of the largest is one divided by the total.
static void forward_extremes(const struct pass *pass) {
    int units = pass->layer->in.c;
    const float *x = pass->x[0], *probabilities = pass->brief;
    memcpy(pass->brief, x, (size_t)pass->n * (size_t)units * sizeof *x);
    pass->kernels->softmax(pass->brief, pass->n, units);
    for (int i = 0; i < pass->n; i++, x += units, probabilities += units) {
        pass->y[i * EXTREMES + LARGEST] = largest_of(x, units);
        pass->y[i * EXTREMES + TOTAL] = 1 / largest_of(probabilities, units);
    }
}

static void backward_nothing(const struct pass *pass) {
    (void)pass;
}

const struct layer_type layer_extremes = {
    .name = "extremes",
    .what = "of some classes the largest sum, and the total of their exponentials",
    .inputs_most = 1,
    .stops = true,
    .scratch = scratch_extremes,
    .forward = forward_extremes,
    .backward = backward_nothing,
};

// What the probabilities of a sample among the partition's own classes, whose extremes are number
// `own`, are to be multiplied by.
static float share_of_own(const float *extremes, int count, int own) {
    float largest = extremes[LARGEST], total = 0;
    for (int i = 1; i < count; i++)
        if (extremes[i * EXTREMES + LARGEST] > largest)
            largest = extremes[i * EXTREMES + LARGEST];
    for (int i = 0; i < count; i++)
        total += extremes[i * EXTREMES + TOTAL] * expf(extremes[i * EXTREMES + LARGEST] - largest);
    const float *mine = &extremes[own * EXTREMES];
    return mine[TOTAL] * expf(mine[LARGEST] - largest) / total;
}

static void forward_softmax(const struct pass *pass) {
    const struct layer *layer = pass->layer;
    int units = layer->out.c, count = pass->in[1].c / EXTREMES;
    float *y = pass->y;
    memcpy(y, pass->x[0], pass_outputs(pass) * sizeof *y);
    pass->kernels->softmax(y, pass->n, units);
    for (int i = 0; i < pass->n; i++, y += units) {
        float share =
            share_of_own(pass->x[1] + (size_t)(i * count * EXTREMES), count, layer->partition);
        for (int c = 0; c < units; c++)
            y[c] *= share;
    }
}

// --- outputs ----------------------------------------------------------------------------

static void scratch_logistic(const struct layer *layer, int n, bool train, size_t *kept,
                             size_t *brief) {
    (void)train, (void)brief;
    *kept = (size_t)n * shape_size(layer->out);
}

static void forward_logistic(const struct pass *pass) {
    memcpy(pass->y, pass->x[0], pass_outputs(pass) * sizeof *pass->y);
    pass_score(pass, pass->kept);
}

static void forward_linear(const struct pass *pass) {
    memcpy(pass->y, pass->x[0], pass_outputs(pass) * sizeof *pass->y);
}

// The error gradients of the sums, which the net has put there.
static void backward_joined(const struct pass *pass) {
    if (pass->dx[0])
        memcpy(pass->dx[0], pass->dy, pass_outputs(pass) * sizeof *pass->dy);
}

#define JOINED(variable, type_name, text, ...)                                                     \
    static const struct layer_type variable = {.name = type_name,                                  \
                                               .what = text,                                       \
                                               .output = true,                                     \
                                               .inputs_most = 2,                                   \
                                               .backward = backward_joined,                        \
                                               __VA_ARGS__}

JOINED(joined_softmax, "softmax", "the probabilities of some classes among all", .goal = GOAL_CLASS,
       .forward = forward_softmax);
JOINED(joined_logistic, "logistic", "the probabilities of some classes, each on its own",
       .goal = GOAL_CLASSES, .scratch = scratch_logistic, .forward = forward_logistic);
JOINED(joined_linear, "linear", "some numbers, as they are", .goal = GOAL_NUMBERS,
       .forward = forward_linear);

const struct layer_type *layer_joined(enum goal goal) {
    return goal == GOAL_CLASS     ? &joined_softmax
           : goal == GOAL_CLASSES ? &joined_logistic
                                  : &joined_linear;
}
