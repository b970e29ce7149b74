// relu, tanh, sigmoid, linear and dropout as layers of their own: a copy of the
// input, activated.
#include <string.h>

#include "model/keys.h"
#include "model/pass.h"

static bool shape_activation(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    *misfit = (struct misfit){0};
    layer->out = in[0];
    return true;
}

static void scratch_activation(const struct layer *layer, int n, bool train, size_t *kept,
                               size_t *brief) {
    *kept = *brief = pass_mask_size(layer, n, train);
}

static void forward_activation(const struct pass *pass) {
    memcpy(pass->y, pass->x[0], (size_t)pass->places * shape_size(pass->in[0]) * sizeof(float));
    pass_activate(pass, pass->kept);
}

static void backward_activation(const struct pass *pass) {
    if (!pass->dx[0])
        return;
    pass_activate_back(pass, pass->kept);
    memcpy(pass->dx[0], pass->dy, (size_t)pass->places * shape_size(pass->in[0]) * sizeof(float));
}

static bool shape_relu(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    layer->act = ACT_RELU;
    return shape_activation(layer, in, misfit);
}

static bool shape_tanh(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    layer->act = ACT_TANH;
    return shape_activation(layer, in, misfit);
}

static bool shape_sigmoid(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    layer->act = ACT_SIGMOID;
    return shape_activation(layer, in, misfit);
}

static const struct layer_key dropout_keys[] = {KEY_DROPOUT("0.5")};

#define ACTIVATION(variable, type_name, text, shape_rule)                                          \
    const struct layer_type variable = {.name = type_name,                                         \
                                        .what = text,                                              \
                                        .activation = true,                                        \
                                        .layout = LAYOUT_FOLLOW,                                   \
                                        .inputs_most = 1,                                          \
                                        .back_reads_y = true,                                      \
                                        .shape = shape_rule,                                       \
                                        .scratch = scratch_activation,                             \
                                        .forward = forward_activation,                             \
                                        .backward = backward_activation}

ACTIVATION(layer_relu, "relu", "max(0, x)", shape_relu);
ACTIVATION(layer_tanh, "tanh", "hyperbolic tangent", shape_tanh);
ACTIVATION(layer_sigmoid, "sigmoid", "1 / (1 + exp(-x))", shape_sigmoid);
ACTIVATION(layer_linear, "linear", "x as it is", shape_activation);

const struct layer_type layer_dropout = {
    .name = "dropout",
    .what = "sets a share of its inputs to 0 in training and scales up the others",
    .keys = dropout_keys,
    .key_count = KEY_COUNT_OF(dropout_keys),
    .layout = LAYOUT_FOLLOW,
    .inputs_most = 1,
    .back_reads_y = true,
    .shape = shape_activation,
    .scratch = scratch_activation,
    .forward = forward_activation,
    .backward = backward_activation,
};
