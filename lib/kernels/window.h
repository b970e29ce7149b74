// Where windows over pictures lie. Inside lib/kernels and lib/model.
#ifndef ADAM_KERNELS_WINDOW_H
#define ADAM_KERNELS_WINDOW_H

#include "kernels/shapes.h"

// The part [first, last) of the output positions at which a tap falls on the
// picture, not on padding: 0 <= o * stride + shift < size.
static inline void tap_range(int shift, int stride, int size, int out, int *first, int *last) {
    int begin = shift < 0 ? (-shift + stride - 1) / stride : 0;
    int end = size > shift ? (size - shift + stride - 1) / stride : 0;
    *first = begin < out ? begin : out;
    *last = end < out ? end : out;
    if (*last < *first)
        *last = *first;
}

struct window_span { // rows and columns [y0, y1) x [x0, x1) of one window
    int y0, y1, x0, x1;
};

static inline struct window_span window_span(const struct window *v, int oy, int ox) {
    int y = oy * v->stride_h - v->pad_h, x = ox * v->stride_w - v->pad_w;
    int y_end = y + v->kernel_h, x_end = x + v->kernel_w;
    return (struct window_span){y > 0 ? y : 0, y_end < v->h ? y_end : v->h, x > 0 ? x : 0,
                                x_end < v->w ? x_end : v->w};
}

// The windows [first, last) that see row or column `at`.
struct seen {
    int first, last;
};

static inline struct seen windows_seeing(int at, int kernel, int stride, int pad, int out) {
    int least = at + pad - kernel + 1; // where a window that reaches it begins
    int first = least > 0 ? (least + stride - 1) / stride : 0, last = (at + pad) / stride + 1;
    last = last < out ? last : out;
    return (struct seen){first < last ? first : last, last};
}

// The same for the next row or column, `at`, without a division.
static inline void seen_advance(struct seen *s, int at, int kernel, int stride, int pad, int out) {
    while (s->last < out && s->last * stride - pad <= at)
        s->last++;
    while (s->first < s->last && s->first * stride - pad + kernel <= at)
        s->first++;
}

static inline float span_mean_factor(struct window_span s) {
    return 1.0f / (float)((s.y1 - s.y0) * (s.x1 - s.x0));
}

#endif
