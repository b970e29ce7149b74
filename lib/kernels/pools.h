// Pools of plain samples.
#ifndef ADAM_KERNELS_POOLS_H
#define ADAM_KERNELS_POOLS_H

#include <stdbool.h>
#include <stdint.h>

struct window;

// Over n samples.
struct pool_kernels {
    // maxpool keeps in `winner` the place of each maximum
    // within its map; the adjoints write all of dx. What is no number loses to any number
    // that comes before it in the window, and then has no part in the step, nor error gradients.
    // That hides no divergence: weights that are not finite make whole maps of it.
    // With `relu`, y is relu of the maximum; where that is not above 0 nobody wins (-1),
    // so that the adjoint is that of both.
    void (*maxpool)(float *y, int32_t *winner, const float *x, int n, const struct window *window,
                    bool relu);
    void (*maxpool_back)(float *dx, const float *dy, const int32_t *winner, int n,
                         const struct window *window);
    // The mean over the pixels of the window that exist.
    void (*avgpool)(float *y, const float *x, int n, const struct window *window);
    void (*avgpool_back)(float *dx, const float *dy, int n, const struct window *window);
    // The root of the sum of squares (DistBelief's L2 pooling).
    void (*l2pool)(float *y, const float *x, int n, const struct window *window);
    void (*l2pool_back)(float *dx, const float *dy, const float *y, const float *x, int n,
                        const struct window *window);
};

#endif
