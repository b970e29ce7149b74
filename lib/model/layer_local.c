// local: like conv, but each place has kernels of its own ("locally connected
// [...] filters are not shared", DistBelief's image model). For each output pixel
// the patches of all samples form a matrix, so its weights are read once a batch.
#include <string.h>

#include "kernels/conv.h"
#include "kernels/dense.h"
#include "kernels/kernels.h"
#include "model/keys.h"
#include "model/pass.h"
#include "model/share.h"

static const struct layer_key keys[] = {
    KEY_MAPS, KEY_KERNEL, KEY_STRIDE, KEY_PAD, KEY_ROUND, KEY_ACT, KEY_SLOPE, KEY_DROPOUT("0"),
};

static bool shape_local(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    if (!window_shape(layer, "kernel", misfit))
        return false;
    layer->out.c = layer->maps;
    size_t taps = (size_t)layer->kernel.h * (size_t)layer->kernel.w;
    size_t fan_in = (size_t)in[0].c * taps, pixels = (size_t)layer->out.h * (size_t)layer->out.w;
    layer->weights = (struct parameter){
        .count = pixels * (size_t)layer->maps * fan_in,
        .dims = {(int)pixels, layer->maps, in[0].c, layer->kernel.h, layer->kernel.w},
        .rank = 5,
        .fan_in = fan_in,
        .fan_out = (size_t)layer->maps * taps,
    };
    layer->biases = (struct parameter){
        .count = shape_size(layer->out),
        .dims = {layer->maps, layer->out.h, layer->out.w},
        .rank = 3,
    };
    layer->connections = (uint64_t)layer->weights.count;
    struct window window = layer_window(layer);
    layer->useful = (uint64_t)layer->maps * (size_t)in[0].c * window_taps(&window);
    return true;
}

static int grain_local(const struct layer *layer, enum cut_way way) {
    (void)layer;
    return way == CUT_ROWS;
}

// Places have their own kernels, biases too.
static void share_local(struct share *share, const struct model *model) {
    struct layer *layer = &share->layer;
    int first = share->makes.r0, last = share->makes.r1;
    (void)model;
    share_window(share);
    share_first(share, 0, first * layer->out.w, last * layer->out.w);
    share->boxes[1].low[1] = first;
    share->boxes[1].high[1] = last;
    layer->biases.dims[1] = last - first;
}

// Brief: patches (n x taps), then one pixel's outputs or error gradients (n x maps).
static void scratch_local(const struct layer *layer, int n, bool train, size_t *kept,
                          size_t *brief) {
    *kept = pass_kept_size(layer, n, train);
    *brief = (size_t)n * (layer->weights.fan_in + (size_t)layer->maps);
}

static float *pixel_values(const struct pass *pass) {
    return pass->brief + (size_t)pass->n * pass->layer->weights.fan_in;
}

// Between n x maps rows and pixel p of n pictures of maps x pixels.
static void scatter_pixel(float *y, const float *rows, int n, int maps, int pixels, int p) {
    for (int i = 0; i < n * maps; i++)
        y[(size_t)i * (size_t)pixels + (size_t)p] = rows[i];
}

static void gather_pixel(float *rows, const float *y, int n, int maps, int pixels, int p) {
    for (int i = 0; i < n * maps; i++)
        rows[i] = y[(size_t)i * (size_t)pixels + (size_t)p];
}

static void forward_local(const struct pass *pass) {
    const struct layer *layer = pass->layer;
    struct window window = layer_window(layer);
    int maps = layer->maps, taps = (int)layer->weights.fan_in;
    int pixels = layer->out.h * layer->out.w;
    const float *weights = pass->weights;
    for (int p = 0; p < pixels; p++, weights += (size_t)maps * (size_t)taps) {
        pass->kernels->conv->patch(pass->brief, pass->x[0], pass->n, &window, p / layer->out.w,
                                   p % layer->out.w);
        pass->kernels->dense->gemm(false, true, pass->n, maps, taps, 1, pass->brief, taps, weights,
                                   taps, 0, pixel_values(pass), maps);
        scatter_pixel(pass->y, pixel_values(pass), pass->n, maps, pixels, p);
    }
    pass->kernels->bias_add(pass->y, pass->biases, pass->n, (int)layer->biases.count, 1);
    pass_activate(pass, pass->kept);
}

static void backward_local(const struct pass *pass) {
    const struct layer *layer = pass->layer;
    struct window window = layer_window(layer);
    int maps = layer->maps, taps = (int)layer->weights.fan_in;
    int pixels = layer->out.h * layer->out.w;
    size_t place = (size_t)maps * (size_t)taps;
    bool learns = layer_learns(layer);
    pass_activate_back(pass, pass->kept);
    if (learns)
        pass->kernels->bias_sum(pass->dbiases, pass->dy, pass->n, (int)layer->biases.count, 1);
    if (pass->dx[0])
        memset(pass->dx[0], 0, (size_t)pass->n * shape_size(layer->in) * sizeof(float));
    for (int p = 0; p < pixels; p++) {
        float *dy = pixel_values(pass);
        gather_pixel(dy, pass->dy, pass->n, maps, pixels, p);
        if (learns) {
            pass->kernels->conv->patch(pass->brief, pass->x[0], pass->n, &window, p / layer->out.w,
                                       p % layer->out.w);
            pass->kernels->dense->gemm(true, false, maps, taps, pass->n, 1, dy, maps, pass->brief,
                                       taps, 0, pass->dweights + (size_t)p * place, taps);
        }
        if (!pass->dx[0])
            continue;
        pass->kernels->dense->gemm(false, false, pass->n, taps, maps, 1, dy, maps,
                                   pass->weights + (size_t)p * place, taps, 0, pass->brief, taps);
        pass->kernels->conv->patch_add(pass->dx[0], pass->brief, pass->n, &window, p / layer->out.w,
                                       p % layer->out.w);
    }
}

const struct layer_type layer_local = {
    .name = "local",
    .what = "locally connected: each map has a kernel of its own for every place",
    .keys = keys,
    .key_count = KEY_COUNT_OF(keys),
    .trains = true,
    .inputs_most = 1,
    .acts = ACTS_ALL,
    .back_reads_x = true,
    .shape = shape_local,
    .grain = grain_local,
    .share = share_local,
    .scratch = scratch_local,
    .forward = forward_local,
    .backward = backward_local,
};
