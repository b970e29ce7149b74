// maxpool, avgpool and l2pool.
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/kernels.h"
#include "kernels/pools.h"
#include "model/keys.h"
#include "model/pass.h"
#include "model/share.h"

static const struct layer_key keys[] = {
    KEY_SIZE_PAIR,
    {"stride", KEY_PAIR, MEMBER(stride), 0, 1e4, "0", NULL,
     "pixels from one window to the next; 0: the size, so that windows do not overlap"},
    KEY_PAD,
    KEY_ROUND,
};

static bool shape_pool(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    layer->out.c = in[0].c;
    if (layer->kernel.h == 0) { // size=all
        *misfit = (struct misfit){.key = "pad", .input = -1, .need = "a size other than all"};
        if (layer->pad.h || layer->pad.w)
            return false;
        layer->kernel = (struct pair){in[0].h, in[0].w};
    }
    if (layer->stride.h == 0)
        layer->stride.h = layer->kernel.h;
    if (layer->stride.w == 0)
        layer->stride.w = layer->kernel.w;
    return window_shape(layer, "size", misfit);
}

static void share_pool(struct share *share, const struct model *model) {
    (void)model;
    share_window(share);
    share->needs[0].c0 = share->makes.c0;
    share->needs[0].c1 = share->makes.c1;
}

static void scratch_winners(const struct layer *layer, int n, bool train, size_t *kept,
                            size_t *brief) {
    (void)brief, (void)train;
    *kept = (size_t)n * shape_size(layer->out); // an int32_t each
}

static void *kept_winners(const struct pass *pass) {
    return (char *)pass->kept + pass_above(pass) * maxpool_winner_size(&pass->window);
}

static void forward_max(const struct pass *pass) {
    const struct window *window = &pass->window;
    if (pass->lanes)
        pass->kernels->blocks->maxpool(pass->y, kept_winners(pass), pass->x[0], pass->blocks,
                                       pass->lanes, window, pass->act == ACT_RELU);
    else
        pass->kernels->pools->maxpool(pass->y, kept_winners(pass), pass->x[0], pass->n, window,
                                      pass->act == ACT_RELU);
}

static void backward_max(const struct pass *pass) {
    const struct window *window = &pass->window;
    if (!pass->dx[0])
        return;
    if (pass->lanes)
        pass->kernels->blocks->maxpool_back(pass->dx[0], pass->dy, kept_winners(pass), pass->blocks,
                                            pass->lanes, window);
    else
        pass->kernels->pools->maxpool_back(pass->dx[0], pass->dy, kept_winners(pass), pass->n,
                                           window);
}

// The error gradients of a plain sample come window by window, before they overwrite its inputs.
static void scratch_errors(const struct layer *layer, int n, bool train, size_t *kept,
                           size_t *brief) {
    (void)kept, (void)n;
    *brief = train ? shape_size(layer->in) : 0;
}

static void forward_avg(const struct pass *pass) {
    const struct window *window = &pass->window;
    if (pass->lanes)
        pass->kernels->blocks->avgpool(pass->y, pass->x[0], pass->blocks, pass->lanes, window);
    else
        pass->kernels->pools->avgpool(pass->y, pass->x[0], pass->n, window);
}

static void backward_avg(const struct pass *pass) {
    const struct window *window = &pass->window;
    if (!pass->dx[0])
        return;
    if (pass->lanes) {
        pass->kernels->blocks->avgpool_back(pass->dx[0], pass->dy, pass->undoes ? pass->x[0] : NULL,
                                            pass->blocks, pass->lanes, window);
        return;
    }
    size_t in = shape_size(pass->in[0]), out = shape_size(pass->layer->out);
    for (int i = 0; i < pass->n; i++) {
        size_t at = (size_t)i * in;
        pass->kernels->pools->avgpool_back(pass->brief, pass->dy + (size_t)i * out, 1, window);
        if (pass->undoes)
            pass->kernels->acts[ACT_RELU].back(pass->brief, pass->x[0] + at, in, 0);
        memcpy(pass->dx[0] + at, pass->brief, in * sizeof *pass->brief);
    }
}

static void forward_l2(const struct pass *pass) {
    const struct window *window = &pass->window;
    if (pass->lanes)
        pass->kernels->blocks->l2pool(pass->y, pass->x[0], pass->blocks, pass->lanes, window);
    else
        pass->kernels->pools->l2pool(pass->y, pass->x[0], pass->n, window);
}

static void backward_l2(const struct pass *pass) {
    const struct window *window = &pass->window;
    if (!pass->dx[0])
        return;
    if (pass->lanes)
        pass->kernels->blocks->l2pool_back(pass->dx[0], pass->dy, pass->y, pass->x[0], pass->blocks,
                                           pass->lanes, window);
    else
        pass->kernels->pools->l2pool_back(pass->dx[0], pass->dy, pass->y, pass->x[0], pass->n,
                                          window);
}

#define POOL(variable, type_name, text, ...)                                                       \
    const struct layer_type variable = {.name = type_name,                                         \
                                        .what = text,                                              \
                                        .keys = keys,                                              \
                                        .key_count = KEY_COUNT_OF(keys),                           \
                                        .layout = LAYOUT_FOLLOW,                                   \
                                        .inputs_most = 1,                                          \
                                        .team_cut = pass_team_cut_rows,                            \
                                        .shape = shape_pool,                                       \
                                        .grain = share_any,                                        \
                                        .share = share_pool,                                       \
                                        __VA_ARGS__}

POOL(layer_maxpool, "maxpool", "the maximum of each window", .scratch = scratch_winners,
     .maximum = true, .bands = true, .acts = 1u << ACT_LINEAR | 1u << ACT_RELU,
     .forward = forward_max, .backward = backward_max);
POOL(layer_avgpool, "avgpool", "the mean of each window, over the pixels that exist",
     .scratch = scratch_errors, .undoes_relu = true, .back_over_x = true, .forward = forward_avg,
     .backward = backward_avg);
POOL(layer_l2pool, "l2pool", "the root of the sum of squares of each window", .forward = forward_l2,
     .back_reads_x = true, .back_reads_y = true, .backward = backward_l2);
