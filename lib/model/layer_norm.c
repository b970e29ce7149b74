// lrn, across maps, and lcn, across space and maps.
#include "kernels/blocks.h"
#include "kernels/kernels.h"
#include "model/keys.h"
#include "model/pass.h"
#include "model/share.h"

static const struct layer_key lrn_keys[] = {
    {"size", KEY_INT, MEMBER(size), 1, 1e4, "5", NULL, "neighbouring maps summed over, odd"},
    {"alpha", KEY_REAL, MEMBER(alpha), 0, 1e6, "0.0001", NULL, "weight of the mean of the squares"},
    {"beta", KEY_REAL, MEMBER(beta), 0, 1e3, "0.75", NULL, "power"},
    {"k", KEY_REAL, MEMBER(bias_k), 1e-6, 1e6, "1", NULL, "constant added"},
};

static const struct layer_key lcn_keys[] = {
    {"size", KEY_INT, MEMBER(size), 1, 63, "9", NULL,
     "height and width of the Gaussian window, odd"},
    {"alpha", KEY_REAL, MEMBER(alpha), 1e-6, 1e6, "0.01", NULL, "least deviation divided by"},
};

static bool shape_norm(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    *misfit = (struct misfit){.key = "size", .input = -1};
    layer->out = in[0];
    if (layer->size % 2 == 1)
        return true;
    __builtin_strcpy(misfit->need, "to be odd");
    return false;
}

static int grain_norm(const struct layer *layer, enum cut_way way) {
    (void)layer;
    return way == CUT_ROWS;
}

// The mean by which a value is divided is one of values from each of which a mean has been taken:
// those of twice half the window, on both sides.
static void share_lcn(struct share *share, const struct model *model) {
    int around = share->layer.size / 2 * 2, height = share->layer.in.h;
    struct region *makes = &share->makes;
    (void)model;
    makes->r0 = makes->r0 > around ? makes->r0 - around : 0;
    makes->r1 = makes->r1 < height - around ? makes->r1 + around : height;
    share->needs[0] = *makes;
    share->exact = false;
}

static void scratch_lrn(const struct layer *layer, int n, bool train, size_t *kept, size_t *brief) {
    (void)train, (void)brief;
    *kept = (size_t)n * shape_size(layer->out); // the scales
}

static int pixel_count(const struct pass *pass) {
    return pass->window.h * pass->window.w;
}

static float *kept_scales(const struct pass *pass) {
    return pass->kept + pass_above(pass);
}

static void forward_lrn(const struct pass *pass) {
    const struct layer *l = pass->layer;
    if (pass->lanes)
        pass->kernels->norm_blocks->lrn(pass->y, kept_scales(pass), pass->x[0], pass->blocks,
                                        pass->lanes, l->in.c, pixel_count(pass), l->size, l->alpha,
                                        l->beta, l->bias_k);
    else
        pass->kernels->lrn(pass->y, kept_scales(pass), pass->x[0], pass->n, l->in.c,
                           pixel_count(pass), l->size, l->alpha, l->beta, l->bias_k);
}

static void backward_lrn(const struct pass *pass) {
    const struct layer *l = pass->layer;
    if (!pass->dx[0])
        return;
    if (pass->lanes)
        pass->kernels->norm_blocks->lrn_back(
            pass->dx[0], pass->dy, pass->y, kept_scales(pass), pass->x[0], pass->undoes,
            pass->blocks, pass->lanes, l->in.c, pixel_count(pass), l->size, l->alpha, l->beta);
    else
        pass->kernels->lrn_back(pass->dx[0], pass->dy, pass->y, kept_scales(pass), pass->x[0],
                                pass->undoes, pass->n, l->in.c, pixel_count(pass), l->size,
                                l->alpha, l->beta);
}

// Kept: the centred values, then the deviations.
static void scratch_lcn(const struct layer *layer, int n, bool train, size_t *kept, size_t *brief) {
    size_t plane = (size_t)layer->in.h * (size_t)layer->in.w;
    *kept = (size_t)n * (shape_size(layer->out) + plane);
    *brief = train ? 2 * KERNELS_LANES_MOST * plane : 0;
}

static float *kept_deviations(const struct pass *pass) {
    return pass->kept + (size_t)pass->places * shape_size(pass->layer->out);
}

static void forward_lcn(const struct pass *pass) {
    const struct layer *l = pass->layer;
    if (pass->lanes)
        pass->kernels->norm_blocks->lcn(pass->y, pass->kept, kept_deviations(pass), pass->x[0],
                                        pass->blocks, pass->lanes, l->in.c, l->in.h, l->in.w,
                                        l->size, l->alpha);
    else
        pass->kernels->lcn(pass->y, pass->kept, kept_deviations(pass), pass->x[0], pass->n, l->in.c,
                           l->in.h, l->in.w, l->size, l->alpha);
}

static void backward_lcn(const struct pass *pass) {
    const struct layer *l = pass->layer;
    if (!pass->dx[0])
        return;
    if (pass->lanes)
        pass->kernels->norm_blocks->lcn_back(
            pass->dx[0], pass->dy, pass->kept, kept_deviations(pass), pass->brief, pass->blocks,
            pass->lanes, l->in.c, l->in.h, l->in.w, l->size, l->alpha);
    else
        pass->kernels->lcn_back(pass->dx[0], pass->dy, pass->kept, kept_deviations(pass),
                                pass->brief, pass->n, l->in.c, l->in.h, l->in.w, l->size, l->alpha);
}

const struct layer_type layer_lrn = {
    .name = "lrn",
    .what = "local response normalisation across maps: x / (k + alpha * mean of squares)^beta",
    .keys = lrn_keys,
    .key_count = KEY_COUNT_OF(lrn_keys),
    .layout = LAYOUT_FOLLOW,
    .inputs_most = 1,
    .back_reads_x = true,
    .back_reads_y = true,
    .back_over_x = true,
    .undoes_relu = true,
    .bands = true,
    .pixelwise = true,
    .team_cut = pass_team_cut_rows,
    .shape = shape_norm,
    .grain = grain_norm,
    .scratch = scratch_lrn,
    .forward = forward_lrn,
    .backward = backward_lrn,
};

const struct layer_type layer_lcn = {
    .name = "lcn",
    .what = "local contrast normalisation: less the local mean, by the local deviation",
    .keys = lcn_keys,
    .key_count = KEY_COUNT_OF(lcn_keys),
    .normalises = true,
    .layout = LAYOUT_FOLLOW,
    .inputs_most = 1,
    .shape = shape_norm,
    .grain = grain_norm,
    .share = share_lcn,
    .scratch = scratch_lcn,
    .forward = forward_lcn,
    .backward = backward_lcn,
};
