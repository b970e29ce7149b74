// add: the sum of several layers, which is how the branches of a residual net join (He 2015).
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "model/keys.h"
#include "model/pass.h"
#include "model/share.h"

static const struct layer_key keys[] = {KEY_ACT, KEY_SLOPE, KEY_DROPOUT("0")};

static bool shape_add(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    *misfit = (struct misfit){.key = "from"};
    layer->out = in[0];
    for (int i = 1; i < layer->from_count; i++)
        if (in[i].c != in[0].c || in[i].h != in[0].h || in[i].w != in[0].w) {
            misfit->input = i;
            snprintf(misfit->need, sizeof misfit->need, "inputs of one shape, here %dx%dx%d",
                     in[0].c, in[0].h, in[0].w);
            return false;
        }
    return true;
}

static void scratch_add(const struct layer *layer, int n, bool train, size_t *kept, size_t *brief) {
    *kept = pass_kept_size(layer, n, train);
    *brief = pass_mask_size(layer, n, train);
}

static void forward_add(const struct pass *pass) {
    size_t n = pass_outputs(pass);
    int count = pass->layer->from_count;
    if (count == 2 && pass->act == ACT_RELU && pass->layer->dropout == 0) {
        pass->kernels->add_relu(pass->y, pass->x[0], pass->x[1], n);
        return;
    }
    if (count == 1)
        memcpy(pass->y, pass->x[0], n * sizeof *pass->y);
    else
        pass->kernels->add(pass->y, pass->x[0], pass->x[1], n);
    for (int i = 2; i < count; i++)
        pass->kernels->axpy(pass->y, pass->x[i], n, 1);
    pass_activate(pass, pass->kept);
}

static void backward_add(const struct pass *pass) {
    size_t n = (size_t)pass->places * shape_size(pass->layer->out);
    pass_activate_back(pass, pass->kept);
    for (int i = 0; i < pass->layer->from_count; i++)
        if (pass->dx[i] && pass->dx[i] != pass->dy) // see net_lend.c
            memcpy(pass->dx[i], pass->dy, n * sizeof *pass->dy);
}

const struct layer_type layer_add = {
    .name = "add",
    .what = "the sum of several layers (from=A,B)",
    .keys = keys,
    .key_count = KEY_COUNT_OF(keys),
    .layout = LAYOUT_FOLLOW,
    .inputs_most = LAYER_INPUTS_MAX,
    .acts = ACTS_ALL,
    .sum = true,
    .back_keeps_dy = true,
    .team_cut = pass_team_cut_rows,
    .shape = shape_add,
    .grain = share_any,
    .scratch = scratch_add,
    .forward = forward_add,
    .backward = backward_add,
};
