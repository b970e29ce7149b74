// groupnorm and layernorm.
#include "kernels/group_norm.h"

#include <stdio.h>

#include "kernels/blocks.h"
#include "kernels/kernels.h"
#include "model/keys.h"
#include "model/pass.h"
#include "model/share.h"

#define KEY_EPSILON                                                                                \
    { "epsilon", KEY_REAL, MEMBER(alpha), 1e-12, 1, "1e-05", NULL, "added to the variance" }

static const struct layer_key group_keys[] = {
    {"groups", KEY_INT, MEMBER(groups), 1, 1e6, NULL, NULL,
     "groups of maps, each of which is normalised by itself"},
    KEY_EPSILON,
    KEY_ACT,
    KEY_SLOPE,
};

static const struct layer_key layer_keys[] = {KEY_EPSILON, KEY_ACT, KEY_SLOPE};

static struct group_norm norm_of(const struct layer *layer) {
    return (struct group_norm){.c = layer->in.c,
                               .pixels = layer->in.h * layer->in.w,
                               .groups = layer->groups ? layer->groups : 1,
                               .each = !layer->groups,
                               .epsilon = layer->alpha};
}

static bool shape_groups(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    *misfit = (struct misfit){.key = "groups"};
    layer->out = in[0];
    if (in[0].c % layer->groups) {
        snprintf(misfit->need, sizeof misfit->need, "to divide the maps of its input");
        return false;
    }
    layer->weights = (struct parameter){
        .count = (size_t)in[0].c, .dims = {in[0].c}, .rank = 1, .fan_in = 1, .fan_out = 1};
    layer->biases = layer->weights;
    return true;
}

// Groups stay together.
static int grain_groups(const struct layer *layer, enum cut_way way) {
    return way == CUT_MAPS ? layer->in.c / layer->groups : 0;
}

static void share_groups(struct share *share, const struct model *model) {
    int first = share->makes.c0, last = share->makes.c1;
    (void)model;
    share->layer.groups = (last - first) / grain_groups(&share->layer, CUT_MAPS);
    share_first(share, 0, first, last);
    share_first(share, 1, first, last);
}

static bool shape_values(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    bool flat = in[0].h == 1 && in[0].w == 1;
    *misfit = (struct misfit){0};
    layer->out = in[0];
    layer->weights = (struct parameter){.count = shape_size(in[0]),
                                        .dims = {in[0].c, in[0].h, in[0].w},
                                        .rank = flat ? 1 : 3,
                                        .fan_in = 1,
                                        .fan_out = 1};
    layer->biases = layer->weights;
    return true;
}

// Kept: what the activation keeps, then means and deviations.
static void scratch_norm(const struct layer *layer, int n, bool train, size_t *kept,
                         size_t *brief) {
    const struct group_norm norm = norm_of(layer);
    *kept = pass_kept_size(layer, n, train) + (size_t)n * (size_t)group_norm_kept(&norm);
    *brief = (size_t)group_norm_scratch(&norm, KERNELS_LANES_MOST);
}

static float *kept_stats(const struct pass *pass) {
    return pass->kept + pass_kept_size(pass->layer, pass->places, pass->trains);
}

static void forward_norm(const struct pass *pass) {
    const struct group_norm norm = norm_of(pass->layer);
    if (pass->lanes)
        pass->kernels->norm_blocks->group_norm(pass->y, kept_stats(pass), pass->x[0], pass->weights,
                                               pass->biases, pass->blocks, pass->lanes, &norm,
                                               pass->brief);
    else
        pass->kernels->group_norm(pass->y, kept_stats(pass), pass->x[0], pass->weights,
                                  pass->biases, pass->n, &norm);
    pass_activate(pass, pass->kept);
}

static void backward_norm(const struct pass *pass) {
    const struct group_norm norm = norm_of(pass->layer);
    pass_activate_back(pass, pass->kept);
    if (pass->lanes)
        pass->kernels->norm_blocks->group_norm_back(
            pass->dx[0], pass->dweights, pass->dbiases, pass->dy, kept_stats(pass), pass->x[0],
            pass->weights, pass->blocks, pass->lanes, &norm, pass->brief);
    else
        pass->kernels->group_norm_back(pass->dx[0], pass->dweights, pass->dbiases, pass->dy,
                                       kept_stats(pass), pass->x[0], pass->weights, pass->n, &norm);
}

#define NORM(name_, text, ...)                                                                     \
    const struct layer_type layer_##name_ = {.name = #name_,                                       \
                                             .what = text,                                         \
                                             .trains = true,                                       \
                                             .scales = true,                                       \
                                             .normalises = true,                                   \
                                             .inputs_most = 1,                                     \
                                             .acts = ACTS_ALL,                                     \
                                             .back_reads_x = true,                                 \
                                             .scratch = scratch_norm,                              \
                                             .forward = forward_norm,                              \
                                             .backward = backward_norm,                            \
                                             __VA_ARGS__}

NORM(groupnorm, "group normalisation: each group of maps less its mean, by its deviation",
     .keys = group_keys, .key_count = KEY_COUNT_OF(group_keys), .layout = LAYOUT_FOLLOW,
     .shape = shape_groups, .grain = grain_groups, .share = share_groups);
NORM(layernorm, "layer normalisation: all values less their mean, by their deviation",
     .keys = layer_keys, .key_count = KEY_COUNT_OF(layer_keys), .layout = LAYOUT_PLAIN,
     .shape = shape_values);
