// The layout of blocks (kernels.h), and pools and norms of blocks.
#ifndef ADAM_KERNELS_BLOCKS_H
#define ADAM_KERNELS_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

struct group_norm;
struct window;

// Bytes of what maxpool keeps of each output, in the order of y.
size_t maxpool_winner_size(const struct window *window);

// Floats of a vector of any family that has some. No block has more samples.
enum { KERNELS_LANES_LEAST = 4, KERNELS_LANES_MOST = 16 };

struct block_kernels {
    // Plain samples to blocks and back. c x pixels each.
    void (*block)(float *blocks, const float *samples, int n, int c, int pixels, int lanes);
    void (*unblock)(float *samples, const float *blocks, int n, int c, int pixels, int lanes);

    // The pools of pools.h. winner, maxpool_winner_size() bytes for each output, holds what the
    // adjoint needs to find the maxima. relu: as of winograd_kernels; it may lie where dx does.
    void (*maxpool)(float *y, void *winner, const float *x, int blocks, int lanes,
                    const struct window *window, bool relu);
    void (*maxpool_back)(float *dx, const float *dy, const void *winner, int blocks, int lanes,
                         const struct window *window);
    void (*avgpool)(float *y, const float *x, int blocks, int lanes, const struct window *window);
    void (*avgpool_back)(float *dx, const float *dy, const float *relu, int blocks, int lanes,
                         const struct window *window);
    void (*l2pool)(float *y, const float *x, int blocks, int lanes, const struct window *window);
    void (*l2pool_back)(float *dx, const float *dy, const float *y, const float *x, int blocks,
                        int lanes, const struct window *window);
};

// The norms of kernels.h. lrn's scale, which holds what its adjoint needs, and lcn's v have the
// layout of x; lcn's s is blocks x h*w x lanes, its plane 2 * h*w * lanes floats.
struct norm_block_kernels {
    void (*lrn)(float *y, float *scale, const float *x, int blocks, int lanes, int c, int pixels,
                int size, float alpha, float beta, float k);
    // dx may be x.
    void (*lrn_back)(float *dx, const float *dy, const float *y, const float *scale, const float *x,
                     bool relu, int blocks, int lanes, int c, int pixels, int size, float alpha,
                     float beta);
    void (*lcn)(float *y, float *v, float *s, const float *x, int blocks, int lanes, int c, int h,
                int w, int size, float least);
    void (*lcn_back)(float *dx, const float *dy, const float *v, const float *s, float *plane,
                     int blocks, int lanes, int c, int h, int w, int size, float least);
    // scratch: group_norm_scratch() floats.
    void (*group_norm)(float *y, float *kept, const float *x, const float *scale,
                       const float *shift, int blocks, int lanes, const struct group_norm *norm,
                       float *scratch);
    void (*group_norm_back)(float *dx, float *dscale, float *dshift, const float *dy,
                            const float *kept, const float *x, const float *scale, int blocks,
                            int lanes, const struct group_norm *norm, float *scratch);
};

#endif
