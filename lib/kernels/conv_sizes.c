#include "kernels/conv_sizes.h"

#include "kernels/block/conv_plan.h"
#include "kernels/winograd_sizes.h"

static int most(int a, int b) {
    return a > b ? a : b;
}

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

uint64_t window_taps(const struct window *v) {
    return side_taps(v->h, v->out_h, v->kernel_h, v->stride_h, v->pad_h) *
           side_taps(v->w, v->out_w, v->kernel_w, v->stride_w, v->pad_w);
}

struct direct_sizes direct_sizes(const struct convolution *conv, int lanes) {
    const struct window *v = &conv->window;
    int reach_h = (v->out_h - 1) * v->stride_h + v->kernel_h;
    int reach_w = (v->out_w - 1) * v->stride_w + v->kernel_w;
    int width = most(v->w + 2 * v->pad_w, reach_w);
    struct direct_sizes s = {
        .columns = (width + v->stride_w - 1) / v->stride_w,
        .rows = most(v->h + 2 * v->pad_h, reach_h),
        .taps = v->c / conv->groups * v->kernel_h * v->kernel_w,
        .narrow = v->out_w <= lanes / 2,
    };
    s.row = s.columns * v->stride_w;
    s.plane = (size_t)s.rows * (size_t)s.row;
    s.picture = (size_t)v->c * s.plane + 2 * (size_t)lanes;
    s.strips = s.narrow ? (v->out_h + 1) / 2 : v->out_h * ((v->out_w + lanes - 1) / lanes);
    return s;
}

bool direct_fits(const struct convolution *conv, int lanes) {
    struct direct_sizes s = direct_sizes(conv, lanes);
    return !window_pointwise(&conv->window) && s.picture < INT32_MAX / 2 &&
           2 * window_out_pixels(&conv->window) >= (size_t)s.strips * (size_t)lanes;
}

struct convolution conv_turned(const struct convolution *conv) {
    const struct window *v = &conv->window;
    return (struct convolution){
        .window = {.c = conv->maps,
                   .h = v->out_h,
                   .w = v->out_w,
                   .out_h = v->h,
                   .out_w = v->w,
                   .kernel_h = v->kernel_h,
                   .kernel_w = v->kernel_w,
                   .stride_h = 1,
                   .stride_w = 1,
                   .pad_h = v->kernel_h - 1 - v->pad_h,
                   .pad_w = v->kernel_w - 1 - v->pad_w},
        .maps = v->c,
        .groups = conv->groups,
    };
}

// Adds a * b * c floats, rounded up to a cache line; false when it overflows.
static bool add(size_t *floats, size_t a, size_t b, size_t c) {
    size_t product;
    return !__builtin_mul_overflow(a, b, &product) &&
           !__builtin_mul_overflow(product, c, &product) &&
           !__builtin_add_overflow(product, 15, &product) &&
           !__builtin_add_overflow(*floats, product & ~(size_t)15, floats);
}

// What conv_direct.h takes from its scratch, with vectors of so many lanes.
static bool add_direct(size_t *floats, const struct convolution *conv, int lanes) {
    struct direct_sizes s = direct_sizes(conv, lanes);
    size_t maps = (size_t)conv->maps, strips = (size_t)s.strips, taps = (size_t)s.taps;
    return add(floats, DIRECT_CHUNK, s.picture, 1) && add(floats, taps, 1, 1) &&
           add(floats, 8, strips + 1, 1) &&
           add(floats, DIRECT_CHUNK * maps, strips, (size_t)lanes) && add(floats, maps, taps, 1);
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

size_t conv_scratch(const struct convolution *conv) {
    const struct window *v = &conv->window;
    struct convolution turned = conv_turned(conv);
    size_t taps = (size_t)v->kernel_h * (size_t)v->kernel_w, columns = 0;
    size_t channels = (size_t)v->c, maps = (size_t)conv->maps;
    if (!window_pointwise(v) && !add(&columns, channels, taps, window_out_pixels(v)))
        return SIZE_MAX;
    for (int lanes = 8; lanes <= 16; lanes += 8) {
        size_t there = 0, back = 0;
        if (!add_direct(&there, conv, lanes) || !add_direct(&back, &turned, lanes) ||
            !add(&back, maps, channels, taps))
            return SIZE_MAX;
        columns = larger(columns, larger(there, back));
    }
    return columns;
}

// What block/conv.h takes for one pass from `sources` to `results` channels of a
// group, whose results are h x w.
static bool add_pass(size_t *floats, const struct window *v, int sources, int results, int h,
                     int w) {
    size_t kernel = (size_t)v->kernel_h * (size_t)v->kernel_w, width = (size_t)w;
    size_t maps = (size_t)results + CONV_MAPS_SPARE;
    size_t pixels = larger(width, CONV_PIXELS);
    return add(floats, maps, kernel, (size_t)sources) && add(floats, maps, 1, 1) &&
           add(floats, kernel, 1, 1) && add(floats, CONV_FLOATS(struct conv_run), (size_t)h, 1) &&
           add(floats, CONV_FLOATS(struct conv_run), width, 1) &&
           add(floats, CONV_FLOATS(struct conv_span), width, 1) &&
           add(floats, CONV_FLOATS(struct conv_pixel), pixels, 1);
}

size_t conv_block_scratch(const struct convolution *conv) {
    const struct window *v = &conv->window;
    int channels = v->c / conv->groups, maps = conv->maps / conv->groups;
    size_t there = 0, back = 0;
    if (!add_pass(&there, v, channels, maps, v->out_h, v->out_w) ||
        !add_pass(&back, v, maps, channels, v->h, v->w))
        return SIZE_MAX;
    for (int lanes = 8; lanes <= 16; lanes += 8)
        there = larger(there, winograd_scratch(conv, lanes));
    return larger(there, back);
}
