// concat: the maps of several layers, one behind the other.
#include <stdio.h>
#include <string.h>

#include "model/keys.h"
#include "model/pass.h"
#include "model/share.h"

static bool shape_concat(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    *misfit = (struct misfit){.key = "from"};
    layer->out = in[0];
    for (int i = 1; i < layer->from_count; i++) {
        if (in[i].h != in[0].h || in[i].w != in[0].w) {
            misfit->input = i;
            snprintf(misfit->need, sizeof misfit->need, "inputs of one size, here %dx%d", in[0].h,
                     in[0].w);
            return false;
        }
        if (__builtin_add_overflow(layer->out.c, in[i].c, &layer->out.c)) {
            misfit->input = i;
            snprintf(misfit->need, sizeof misfit->need, "fewer maps");
            return false;
        }
    }
    return true;
}

// Those of the maps that each layer has among them.
static void share_concat(struct share *share, const struct model *model) {
    int before = 0;
    for (int j = 0; j < share->layer.from_count; j++) {
        struct region all = region_all(&model->layers[share->layer.from[j]].out);
        struct region own = share->makes;
        own.c0 -= before, own.c1 -= before;
        share->needs[j] = region_meet(&all, &own);
        before += all.c1;
    }
}

// The inputs are runs of floats that take turns: whole samples, or what a block
// holds of one pixel.
static size_t run_count(const struct pass *pass) {
    const struct window *v = &pass->window;
    return pass->lanes ? (size_t)pass->blocks * (size_t)v->out_h * (size_t)v->out_w
                       : (size_t)pass->n;
}

static size_t run_size(const struct pass *pass, int i) {
    const struct shape *in = &pass->in[i];
    return pass->lanes ? (size_t)in->c * (size_t)pass->lanes : shape_size(*in);
}

static void forward_concat(const struct pass *pass) {
    float *y = pass->y;
    size_t count = run_count(pass);
    for (size_t s = 0; s < count; s++)
        for (int i = 0; i < pass->layer->from_count; i++) {
            size_t size = run_size(pass, i);
            memcpy(y, pass->x[i] + s * size, size * sizeof *y);
            y += size;
        }
}

static void backward_concat(const struct pass *pass) {
    const float *dy = pass->dy;
    size_t count = run_count(pass);
    for (size_t s = 0; s < count; s++)
        for (int i = 0; i < pass->layer->from_count; i++) {
            size_t size = run_size(pass, i);
            if (pass->dx[i])
                memcpy(pass->dx[i] + s * size, dy, size * sizeof *dy);
            dy += size;
        }
}

const struct layer_type layer_concat = {
    .name = "concat",
    .what = "the maps of several layers (from=A,B), one behind the other",
    .layout = LAYOUT_FOLLOW,
    .inputs_most = LAYER_INPUTS_MAX,
    .team_cut = pass_team_cut_rows,
    .shape = shape_concat,
    .grain = share_any,
    .share = share_concat,
    .forward = forward_concat,
    .backward = backward_concat,
};
