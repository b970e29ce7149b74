// Activations and dropout as layers of their own: a copy of the input, activated.
#include <string.h>

#include "model/keys.h"
#include "model/pass.h"
#include "model/share.h"

static bool shape_activation(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    *misfit = (struct misfit){0};
    layer->out = in[0];
    return true;
}

static void scratch_activation(const struct layer *layer, int n, bool train, size_t *kept,
                               size_t *brief) {
    *kept = pass_kept_size(layer, n, train);
    *brief = pass_mask_size(layer, n, train);
}

static void forward_activation(const struct pass *pass) {
    memcpy(pass->y, pass->x[0], pass_outputs(pass) * sizeof *pass->y);
    pass_activate(pass, pass->kept);
}

static void backward_activation(const struct pass *pass) {
    if (!pass->dx[0])
        return;
    pass_activate_back(pass, pass->kept);
    memcpy(pass->dx[0], pass->dy, (size_t)pass->places * shape_size(pass->in[0]) * sizeof(float));
}

static const struct layer_key dropout_keys[] = {KEY_DROPOUT("0.5")};

#define ACTIVATION(name_, act_, text, ...)                                                         \
    static bool shape_##name_(struct layer *layer, const struct shape *in,                         \
                              struct misfit *misfit) {                                             \
        layer->act = act_;                                                                         \
        return shape_activation(layer, in, misfit);                                                \
    }                                                                                              \
    const struct layer_type layer_##name_ = {.name = #name_,                                       \
                                             .what = text,                                         \
                                             .activation = true,                                   \
                                             .layout = LAYOUT_FOLLOW,                              \
                                             .inputs_most = 1,                                     \
                                             .back_reads_y = true,                                 \
                                             .team_cut = pass_team_cut_rows,                       \
                                             .shape = shape_##name_,                               \
                                             .grain = share_any,                                   \
                                             .scratch = scratch_activation,                        \
                                             .forward = forward_activation,                        \
                                             .backward = backward_activation,                      \
                                             __VA_ARGS__}

static const struct layer_key leaky_keys[] = {KEY_SLOPE};

ACTIVATION(linear, ACT_LINEAR, "x as it is");
ACTIVATION(relu, ACT_RELU, "max(0, x)");
ACTIVATION(tanh, ACT_TANH, "hyperbolic tangent");
ACTIVATION(sigmoid, ACT_SIGMOID, "1 / (1 + exp(-x))");
ACTIVATION(leaky, ACT_LEAKY, "x, below 0 times slope", .keys = leaky_keys,
           .key_count = KEY_COUNT_OF(leaky_keys));
ACTIVATION(elu, ACT_ELU, "x, below 0 exp(x) - 1");
ACTIVATION(softplus, ACT_SOFTPLUS, "ln(1 + exp(x))");
ACTIVATION(relu6, ACT_RELU6, "max(0, min(x, 6))");
ACTIVATION(gelu, ACT_GELU, "x times the normal distribution's share below x");
ACTIVATION(silu, ACT_SILU, "x / (1 + exp(-x))");
ACTIVATION(hardswish, ACT_HARDSWISH, "x max(0, min(x + 3, 6)) / 6");

const struct layer_type layer_dropout = {
    .name = "dropout",
    .what = "sets a share of its inputs to 0 in training and scales up the others",
    .keys = dropout_keys,
    .key_count = KEY_COUNT_OF(dropout_keys),
    .layout = LAYOUT_FOLLOW,
    .inputs_most = 1,
    .back_reads_y = true,
    .team_cut = pass_team_cut_rows,
    .shape = shape_activation,
    .grain = share_any,
    .scratch = scratch_activation,
    .forward = forward_activation,
    .backward = backward_activation,
};
