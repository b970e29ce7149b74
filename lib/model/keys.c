#include "model/keys.h"

#include <stdio.h>

#include "kernels/shapes.h"

const char *const act_names[] = {"linear",   "relu",  "tanh", "sigmoid", "leaky",     "elu",
                                 "softplus", "relu6", "gelu", "silu",    "hardswish", NULL};
_Static_assert(sizeof act_names / sizeof *act_names == ACT_COUNT + 1, "a name for each");
const char *const rounding_names[] = {"down", "up", NULL};
const char *const cut_names[] = {"auto", "rows", "maps", "units", "inputs", "none", NULL};
const char *const size_names[] = {"all", NULL};

// Pixels that neighbouring taps leave out; none where there is one tap.
static int skipped(int kernel, int dilation) {
    return kernel > 1 && dilation > 1 ? dilation - 1 : 0;
}

struct pair layer_reach(const struct layer *layer) {
    const struct pair *kernel = &layer->kernel, *dilation = &layer->dilation;
    return (struct pair){kernel->h + (kernel->h - 1) * skipped(kernel->h, dilation->h),
                         kernel->w + (kernel->w - 1) * skipped(kernel->w, dilation->w)};
}

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
        .skip_h = skipped(layer->kernel.h, layer->dilation.h),
        .skip_w = skipped(layer->kernel.w, layer->dilation.w),
    };
}

struct convolution layer_convolution(const struct layer *layer) {
    return (struct convolution){layer_window(layer), layer->maps, layer->groups};
}

// Output side of `size` input pixels; 0 when the kernel does not fit.
static int window_out(int size, int kernel, int stride, int pad, enum rounding round) {
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
    const struct pair reach = layer_reach(layer), *pad = &layer->pad;
    layer->out.h = window_out(layer->in.h, reach.h, layer->stride.h, pad->h, layer->round);
    layer->out.w = window_out(layer->in.w, reach.w, layer->stride.w, pad->w, layer->round);
    *misfit = (struct misfit){.key = key};
    if (pad->h >= reach.h || pad->w >= reach.w) {
        *misfit = (struct misfit){.key = "pad", .input = -1};
        snprintf(misfit->need, sizeof misfit->need, "a %s larger than %dx%d", key, pad->h, pad->w);
        return false;
    }
    if (layer->out.h < 1 || layer->out.w < 1) {
        int h = reach.h - 2 * pad->h, w = reach.w - 2 * pad->w;
        snprintf(misfit->need, sizeof misfit->need, "an input of at least %dx%d", h > 1 ? h : 1,
                 w > 1 ? w : 1);
        return false;
    }
    return true;
}
