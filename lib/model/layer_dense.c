// dense: every output is connected to every input.
#include "model/affine.h"
#include "model/keys.h"

static const struct layer_key keys[] = {
    {"units", KEY_INT, MEMBER(units), 1, 1e9, NULL, NULL, "outputs"},
    KEY_ACT,
    KEY_SLOPE,
    KEY_DROPOUT("0"),
};

static void scratch_dense(const struct layer *layer, int n, bool train, size_t *kept,
                          size_t *brief) {
    affine_scratch(layer, n, train, kept, brief);
    *kept = pass_kept_size(layer, n, train);
}

static void forward_dense(const struct pass *pass) {
    affine_forward(pass);
    pass_activate(pass, pass->kept);
}

static void backward_dense(const struct pass *pass) {
    pass_activate_back(pass, pass->kept);
    affine_backward(pass);
}

const struct layer_type layer_dense = {
    .name = "dense",
    .what = "fully connected",
    .keys = keys,
    .key_count = KEY_COUNT_OF(keys),
    .trains = true,
    .inputs_most = 1,
    .acts = ACTS_ALL,
    .back_reads_x = true,
    .shape = affine_shape,
    .grain = affine_grain,
    .share = affine_share,
    .scratch = scratch_dense,
    .forward = forward_dense,
    .backward = backward_dense,
    .team_cut = affine_team_cut,
    .kept_size = affine_kept_size,
    .keep = affine_keep,
    .way = affine_way,
};
