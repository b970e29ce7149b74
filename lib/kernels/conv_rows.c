#include "kernels/conv_rows.h"

#include <string.h>

#include "kernels/conv_sizes.h"

enum { TAPS_AT_ONCE = 16, LINE = 64 / sizeof(float) };

size_t conv_rows_count(const struct convolution *conv, int blocks, int lanes) {
    return (size_t)blocks * (size_t)lanes * window_out_pixels(&conv->window);
}

size_t conv_rows_inputs(const struct convolution *conv) {
    return (size_t)conv->window.c * conv_taps(conv);
}

size_t conv_rows_floats(size_t rows, size_t each) {
    return (rows * each + LINE - 1) / LINE * LINE;
}

bool conv_rows_lie(const struct convolution *conv, int lanes) {
    return lanes == 1 && window_pointwise(&conv->window);
}

// Some taps of an output pixel: where in a picture the channels begin that each sees; -1: padding.
struct taps {
    int count;
    ptrdiff_t at[TAPS_AT_ONCE];
};

// Those of pixel number `pixel` from tap number `first` on; `step` floats from channel to channel.
static struct taps taps_of(const struct window *w, int step, int pixel, int first) {
    int oy = pixel / w->out_w, ox = pixel % w->out_w;
    int left = w->kernel_h * w->kernel_w - first;
    struct taps taps = {.count = left < TAPS_AT_ONCE ? left : TAPS_AT_ONCE};
    for (int t = 0; t < taps.count; t++) {
        int y = oy * w->stride_h - w->pad_h + (first + t) / w->kernel_w;
        int x = ox * w->stride_w - w->pad_w + (first + t) % w->kernel_w;
        bool seen = y >= 0 && y < w->h && x >= 0 && x < w->w;
        taps.at[t] = seen ? ((ptrdiff_t)y * w->w + x) * w->c * step : -1;
    }
    return taps;
}

// A row's part for these taps, its channels `row_step` apart; of a picture, `step` apart.
static void get_taps(float *row, const float *picture, const struct taps *taps, int channels,
                     size_t row_step, size_t step) {
    static const float padding;
    const float *from[TAPS_AT_ONCE];
    size_t next[TAPS_AT_ONCE];
    for (int t = 0; t < taps->count; t++) {
        from[t] = taps->at[t] < 0 ? &padding : picture + taps->at[t];
        next[t] = taps->at[t] < 0 ? 0 : step;
    }
    for (int c = 0; c < channels; c++, row += row_step)
        for (int t = 0; t < taps->count; t++)
            row[t] = from[t][(size_t)c * next[t]];
}

static void add_taps(float *picture, const float *row, const struct taps *taps, int channels,
                     size_t row_step, size_t step) {
    for (int t = 0; t < taps->count; t++)
        for (int c = 0; c < channels && taps->at[t] >= 0; c++)
            picture[taps->at[t] + (ptrdiff_t)((size_t)c * step)] +=
                row[(size_t)c * row_step + (size_t)t];
}

// Where row number `row` is from: a sample of a block, and a pixel of its outputs.
struct row_place {
    size_t sample; // of the first float, in blocks
    int pixel;
};

static struct row_place row_place(const struct convolution *conv, size_t row, int lanes) {
    size_t pixels = window_out_pixels(&conv->window), all = (size_t)lanes;
    return (struct row_place){row / all / pixels * all * window_in(&conv->window) + row % all,
                              (int)(row / all % pixels)};
}

void conv_rows_gather(float *rows, const float *x, size_t first_row, size_t last, int lanes,
                      const struct convolution *conv) {
    const struct window *w = &conv->window;
    size_t all = conv_taps(conv), inputs = conv_rows_inputs(conv);
    rows += first_row * inputs;
    for (size_t r = first_row; r < last; r++, rows += inputs) {
        struct row_place place = row_place(conv, r, lanes);
        for (size_t first = 0; first < all; first += TAPS_AT_ONCE) {
            struct taps taps = taps_of(w, lanes, place.pixel, (int)first);
            get_taps(rows + first, x + place.sample, &taps, w->c, all, (size_t)lanes);
        }
    }
}

void conv_rows_scatter(float *dx, const float *rows, int blocks, int lanes,
                       const struct convolution *conv) {
    const struct window *w = &conv->window;
    size_t all = conv_taps(conv), count = conv_rows_count(conv, blocks, lanes);
    memset(dx, 0, (size_t)(blocks * lanes) * window_in(w) * sizeof *dx);
    for (size_t r = 0; r < count; r++, rows += conv_rows_inputs(conv)) {
        struct row_place place = row_place(conv, r, lanes);
        for (size_t first = 0; first < all; first += TAPS_AT_ONCE) {
            struct taps taps = taps_of(w, lanes, place.pixel, (int)first);
            add_taps(dx + place.sample, rows + first, &taps, w->c, all, (size_t)lanes);
        }
    }
}
