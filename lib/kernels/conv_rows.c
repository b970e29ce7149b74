#include "kernels/conv_rows.h"

#include <string.h>

#include "kernels/conv_sizes.h"

enum { TAPS_AT_ONCE = 16, LINE = 64 / sizeof(float) };

// Some taps of an output pixel: where in a picture the channels begin that each sees; -1: padding.
struct taps {
    int count;
    ptrdiff_t at[TAPS_AT_ONCE];
};

size_t conv_rows_count(const struct convolution *conv, int blocks) {
    return (size_t)blocks * window_out_pixels(&conv->window);
}

size_t conv_rows_inputs(const struct convolution *conv) {
    return (size_t)conv->window.c * conv_taps(conv);
}

size_t conv_rows_floats(const struct convolution *conv, size_t rows) {
    return (rows * conv_rows_inputs(conv) + LINE - 1) / LINE * LINE;
}

bool conv_rows_lie(const struct convolution *conv) {
    return window_pointwise(&conv->window);
}

// Those of output pixel `pixel` from tap number `first` on.
static struct taps taps_of(const struct window *w, int pixel, int first) {
    int oy = pixel / w->out_w, ox = pixel % w->out_w;
    int left = w->kernel_h * w->kernel_w - first;
    struct taps taps = {.count = left < TAPS_AT_ONCE ? left : TAPS_AT_ONCE};
    for (int t = 0; t < taps.count; t++) {
        int y = oy * w->stride_h - w->pad_h + (first + t) / w->kernel_w;
        int x = ox * w->stride_w - w->pad_w + (first + t) % w->kernel_w;
        bool seen = y >= 0 && y < w->h && x >= 0 && x < w->w;
        taps.at[t] = seen ? ((ptrdiff_t)y * w->w + x) * w->c : -1;
    }
    return taps;
}

// Channels lie `step` floats apart in a row.
static void get_taps(float *row, const float *picture, const struct taps *taps, int channels,
                     size_t step) {
    static const float padding;
    const float *from[TAPS_AT_ONCE];
    size_t next[TAPS_AT_ONCE];
    for (int t = 0; t < taps->count; t++) {
        from[t] = taps->at[t] < 0 ? &padding : picture + taps->at[t];
        next[t] = taps->at[t] < 0 ? 0 : 1;
    }
    for (int c = 0; c < channels; c++, row += step)
        for (int t = 0; t < taps->count; t++)
            row[t] = from[t][(size_t)c * next[t]];
}

static void add_taps(float *picture, const float *row, const struct taps *taps, int channels,
                     size_t step) {
    for (int t = 0; t < taps->count; t++)
        for (int c = 0; c < channels && taps->at[t] >= 0; c++)
            picture[taps->at[t] + c] += row[(size_t)c * step + (size_t)t];
}

void conv_rows_gather(float *rows, const float *x, int blocks, const struct convolution *conv) {
    const struct window *w = &conv->window;
    size_t all = conv_taps(conv), pixels = window_out_pixels(w), in = window_in(w);
    for (size_t r = 0; r < conv_rows_count(conv, blocks); r++, rows += conv_rows_inputs(conv))
        for (size_t first = 0; first < all; first += TAPS_AT_ONCE) {
            struct taps taps = taps_of(w, (int)(r % pixels), (int)first);
            get_taps(rows + first, x + r / pixels * in, &taps, w->c, all);
        }
}

void conv_rows_scatter(float *dx, const float *rows, int blocks, const struct convolution *conv) {
    const struct window *w = &conv->window;
    size_t all = conv_taps(conv), pixels = window_out_pixels(w), in = window_in(w);
    memset(dx, 0, (size_t)blocks * in * sizeof *dx);
    for (size_t r = 0; r < conv_rows_count(conv, blocks); r++, rows += conv_rows_inputs(conv))
        for (size_t first = 0; first < all; first += TAPS_AT_ONCE) {
            struct taps taps = taps_of(w, (int)(r % pixels), (int)first);
            add_taps(dx + r / pixels * in, rows + first, &taps, w->c, all);
        }
}
