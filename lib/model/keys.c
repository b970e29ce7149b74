#include "model/keys.h"

#include <stdio.h>

const char *const act_names[] = {"linear", "relu", "tanh", "sigmoid", NULL};
const char *const rounding_names[] = {"down", "up", NULL};

struct window layer_window(const struct layer *layer) {
    return (struct window){
        .c = layer->in.c,
        .h = layer->in.h,
        .w = layer->in.w,
        .out_h = layer->out.h,
        .out_w = layer->out.w,
        .kernel_h = layer->kernel.h,
        .kernel_w = layer->kernel.w,
        .stride_h = layer->stride.h,
        .stride_w = layer->stride.w,
        .pad_h = layer->pad.h,
        .pad_w = layer->pad.w,
    };
}

int window_out(int size, int kernel, int stride, int pad, enum rounding round) {
    int room = size + 2 * pad - kernel;
    if (room < 0)
        return 0;
    if (round == ROUND_DOWN)
        return room / stride + 1;
    int out = (room + stride - 1) / stride + 1;
    // A window that would begin behind the picture sees nothing.
    return (out - 1) * stride >= size + pad ? out - 1 : out;
}

bool window_shape(struct layer *layer, const char *key, struct misfit *misfit) {
    const struct pair *kernel = &layer->kernel, *pad = &layer->pad;
    layer->out.h = window_out(layer->in.h, kernel->h, layer->stride.h, pad->h, layer->round);
    layer->out.w = window_out(layer->in.w, kernel->w, layer->stride.w, pad->w, layer->round);
    *misfit = (struct misfit){.key = key};
    if (pad->h >= kernel->h || pad->w >= kernel->w) {
        *misfit = (struct misfit){.key = "pad", .input = -1};
        snprintf(misfit->need, sizeof misfit->need, "a %s larger than %dx%d", key, pad->h, pad->w);
        return false;
    }
    if (layer->out.h < 1 || layer->out.w < 1) {
        int h = kernel->h - 2 * pad->h, w = kernel->w - 2 * pad->w;
        snprintf(misfit->need, sizeof misfit->need, "an input of at least %dx%d", h > 1 ? h : 1,
                 w > 1 ? w : 1);
        return false;
    }
    return true;
}

// The taps of a kernel that exist, over all places along one side.
static uint64_t side_taps(int size, int out, int kernel, int stride, int pad) {
    uint64_t taps = 0;
    for (int i = 0; i < out; i++) {
        int64_t begin = (int64_t)i * stride - pad, end = begin + kernel;
        begin = begin > 0 ? begin : 0;
        end = end < size ? end : size;
        taps += end > begin ? (uint64_t)(end - begin) : 0;
    }
    return taps;
}

uint64_t window_taps(const struct layer *layer) {
    return side_taps(layer->in.h, layer->out.h, layer->kernel.h, layer->stride.h, layer->pad.h) *
           side_taps(layer->in.w, layer->out.w, layer->kernel.w, layer->stride.w, layer->pad.w);
}
