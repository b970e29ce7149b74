// conv: shared weights, as columns (im2col) times a matrix, one sample at a time:
// for small nets that is faster than one product for the whole mini-batch, whose
// columns leave the cache.
#include <stdio.h>
#include <string.h>

#include "model/keys.h"
#include "model/pass.h"

static const struct layer_key keys[] = {
    KEY_MAPS,
    KEY_KERNEL,
    KEY_STRIDE,
    KEY_PAD,
    KEY_ROUND,
    {"groups", KEY_INT, MEMBER(groups), 1, 1e6, "1", NULL,
     "parts that the maps are cut into, each seeing only its own part of the input"},
    KEY_ACT,
    KEY_DROPOUT("0"),
};

static bool shape(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    (void)in;
    if (!window_shape(layer, "kernel", misfit))
        return false;
    int maps = layer->maps, groups = layer->groups;
    misfit->key = "groups";
    if (maps % groups || layer->in.c % groups) {
        snprintf(misfit->need, sizeof misfit->need,
                 "to divide its %d maps and those of its input", maps);
        return false;
    }
    layer->out.c = maps;
    size_t taps = (size_t)layer->kernel.h * (size_t)layer->kernel.w;
    size_t fan_in = (size_t)(layer->in.c / groups) * taps;
    layer->weights = (struct parameter){
        .count = (size_t)maps * fan_in,
        .dims = {maps, layer->in.c / groups, layer->kernel.h, layer->kernel.w},
        .rank = 4,
        .fan_in = fan_in,
        .fan_out = (size_t)(maps / groups) * taps,
    };
    layer->biases = (struct parameter){.count = (size_t)maps, .dims = {maps}, .rank = 1};
    layer->connections = (uint64_t)shape_size(layer->out) * fan_in;
    return true;
}

// A 1x1 kernel at stride 1 sees the picture itself: it is its own columns.
static bool pointwise(const struct layer *layer) {
    const struct pair *kernel = &layer->kernel, *stride = &layer->stride, *pad = &layer->pad;
    return kernel->h == 1 && kernel->w == 1 && stride->h == 1 && stride->w == 1 && pad->h == 0 &&
           pad->w == 0;
}

static size_t column_size(const struct layer *layer) {
    return (size_t)layer->in.c * (size_t)layer->kernel.h * (size_t)layer->kernel.w *
           (size_t)layer->out.h * (size_t)layer->out.w;
}

static void scratch(const struct layer *layer, int n, bool train, size_t *kept, size_t *brief) {
    *kept = pass_mask_size(layer, n, train);
    *brief = pointwise(layer) ? 0 : column_size(layer);
}

// The sizes of one group's matrices: W (maps x taps), columns (taps x pixels).
struct product {
    int maps, taps, pixels;
};

static struct product group_product(const struct layer *layer) {
    return (struct product){
        .maps = layer->maps / layer->groups,
        .taps = (int)layer->weights.fan_in,
        .pixels = layer->out.h * layer->out.w,
    };
}

static const float *columns(const struct pass *pass, const float *picture) {
    if (pointwise(pass->layer))
        return picture;
    struct window window = layer_window(pass->layer);
    pass->kernels->im2col(pass->brief, picture, &window);
    return pass->brief;
}

static void forward(const struct pass *pass) {
    const struct layer *layer = pass->layer;
    struct product p = group_product(layer);
    size_t in = shape_size(layer->in), out = shape_size(layer->out);
    for (int i = 0; i < pass->n; i++) {
        const float *column = columns(pass, pass->x[0] + (size_t)i * in);
        for (int g = 0; g < layer->groups; g++)
            pass->kernels->gemm(false, false, p.maps, p.pixels, p.taps, 1,
                                pass->weights + (size_t)(g * p.maps) * (size_t)p.taps, p.taps,
                                column + (size_t)(g * p.taps) * (size_t)p.pixels, p.pixels, 0,
                                pass->y + (size_t)i * out + (size_t)(g * p.maps * p.pixels),
                                p.pixels);
    }
    pass->kernels->bias_add(pass->y, pass->biases, pass->n, layer->maps, p.pixels);
    pass_activate(pass, pass->kept);
}

// dW += dy columns^T
static void weights_back(const struct pass *pass, const float *dy, const float *column,
                         bool first) {
    const struct layer *layer = pass->layer;
    struct product p = group_product(layer);
    for (int g = 0; g < layer->groups; g++)
        pass->kernels->gemm(
            false, true, p.maps, p.taps, p.pixels, 1, dy + (size_t)(g * p.maps * p.pixels),
            p.pixels, column + (size_t)(g * p.taps) * (size_t)p.pixels, p.pixels, first ? 0 : 1,
            pass->dweights + (size_t)(g * p.maps) * (size_t)p.taps, p.taps);
}

// dx = the adjoint of the columns of W^T dy
static void input_back(const struct pass *pass, const float *dy, float *dx) {
    const struct layer *layer = pass->layer;
    struct product p = group_product(layer);
    float *column = pointwise(layer) ? dx : pass->brief;
    for (int g = 0; g < layer->groups; g++)
        pass->kernels->gemm(true, false, p.taps, p.pixels, p.maps, 1,
                            pass->weights + (size_t)(g * p.maps) * (size_t)p.taps, p.taps,
                            dy + (size_t)(g * p.maps * p.pixels), p.pixels, 0,
                            column + (size_t)(g * p.taps) * (size_t)p.pixels, p.pixels);
    if (column == dx)
        return;
    struct window window = layer_window(layer);
    memset(dx, 0, shape_size(layer->in) * sizeof *dx);
    pass->kernels->col2im(dx, column, &window);
}

static void backward(const struct pass *pass) {
    const struct layer *layer = pass->layer;
    size_t in = shape_size(layer->in), out = shape_size(layer->out);
    pass_activate_back(pass, pass->kept);
    pass->kernels->bias_sum(pass->dbiases, pass->dy, pass->n, layer->maps,
                            layer->out.h * layer->out.w);
    for (int i = 0; i < pass->n; i++) {
        const float *dy = pass->dy + (size_t)i * out;
        weights_back(pass, dy, columns(pass, pass->x[0] + (size_t)i * in), i == 0);
        if (pass->dx[0])
            input_back(pass, dy, pass->dx[0] + (size_t)i * in);
    }
}

const struct layer_type layer_conv = {
    .name = "conv",
    .what = "convolution: each map has one kernel for all places",
    .keys = keys,
    .key_count = KEY_COUNT_OF(keys),
    .trains = true,
    .inputs_most = 1,
    .shape = shape,
    .scratch = scratch,
    .forward = forward,
    .backward = backward,
};
