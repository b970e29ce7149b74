// Where windows over pictures lie. Inside lib/kernels and lib/model.
#ifndef ADAM_KERNELS_WINDOW_H
#define ADAM_KERNELS_WINDOW_H

#include "kernels/shapes.h"
#include "kernels/taps.h"

struct window_span { // rows and columns [y0, y1) x [x0, x1) of one window
    int y0, y1, x0, x1;
};

static inline struct window_span window_span(const struct window *v, int oy, int ox) {
    int y = oy * v->stride_h - v->pad_h, x = ox * v->stride_w - v->pad_w;
    int y_end = y + v->kernel_h, x_end = x + v->kernel_w;
    return (struct window_span){y > 0 ? y : 0, y_end < v->h ? y_end : v->h, x > 0 ? x : 0,
                                x_end < v->w ? x_end : v->w};
}

static inline float span_mean_factor(struct window_span s) {
    return 1.0f / (float)((s.y1 - s.y0) * (s.x1 - s.x0));
}

#endif
