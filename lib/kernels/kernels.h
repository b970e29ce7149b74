// The arithmetic: floats in, floats out. One table of functions for each family of processors.
// Nothing outside lib/kernels and lib/model knows a memory layout.
//
// Shapes: n samples, c channels (maps), h x w pixels, one sample behind the
// other, each c x h x w. Matrices are row-major. No kernel allocates.
//
// Blocks: the second layout, of the tables named *_blocks. A block holds `lanes`
// samples (a power of two, at most kernels.lanes), interleaved: h x w x c x lanes,
// the pixel outermost, the sample innermost. So every operation fills the vectors
// whatever its number of maps (with 16 lanes, a vector is one value of 16 samples;
// with one lane it is 16 maps of one sample; with 4, 4 maps of 4), and no border
// need be computed. n samples take (n + lanes - 1) / lanes blocks; the places of
// samples that the last block lacks hold finite values in activations and zeros
// in error gradients.
#ifndef ADAM_KERNELS_KERNELS_H
#define ADAM_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cpu.h"
#include "kernels/activations.h"

struct batch_map_kernels;
struct batch_norm_kernels;
struct convolution;
struct group_norm;
struct update;

struct kernels {
    const char *name; // "ref", "avx2+openblas", ... for --version
    int lanes;        // floats in a vector register; 0: this family has no blocks

    const struct dense_kernels *dense;
    const struct dense_kept_kernels *kept;
    const struct conv_kernels *conv;
    const struct pool_kernels *pools;
    const struct batch_norm_kernels *batch_norm; // of plain samples
    const struct batch_map_kernels *batch_maps;
    // NULL: no blocks.
    const struct block_kernels *blocks;
    const struct norm_block_kernels *norm_blocks;
    const struct batch_norm_kernels *batch_norm_blocks;
    const struct conv_block_kernels *conv_blocks;
    const struct winograd_kernels *winograd;
    const struct conv_kept_kernels *winograd_kept, *packed;

    // y[i][j] += bias[j] over n rows of m; gradient[j] = sum of rows. For maps,
    // each bias stands for `pixels` values in a row.
    void (*bias_add)(float *y, const float *bias, int n, int m, int pixels);
    void (*bias_sum)(float *gradient, const float *dy, int n, int m, int pixels);

    struct activation acts[ACT_COUNT];

    // Local response normalisation across maps (Krizhevsky 2012, 3.3, with alpha
    // divided by size as in Caffe and PyTorch): scale = k + alpha/size * sum of x^2
    // over `size` neighbouring maps, y = x * scale^-beta. `scale` is kept.
    void (*lrn)(float *y, float *scale, const float *x, int n, int c, int pixels, int size,
                float alpha, float beta, float k);
    // dx may be x. With `relu`, x are outputs of one, through which the error gradients go on.
    void (*lrn_back)(float *dx, const float *dy, const float *y, const float *scale, const float *x,
                     bool relu, int n, int c, int pixels, int size, float alpha, float beta);

    // Local contrast normalisation (Jarrett 2009, Le 2012; DistBelief's third
    // stage): with Gaussian weights G over size x size pixels that exist and all
    // maps, summing to 1,
    //   v = x - sum G x,   s = sqrt(sum G v^2),   y = v / max(s, least).
    // v (as x) and s (n x h*w) are kept; `plane` is scratch of 2 * h*w floats.
    void (*lcn)(float *y, float *v, float *s, const float *x, int n, int c, int h, int w, int size,
                float least);
    void (*lcn_back)(float *dx, const float *dy, const float *v, const float *s, float *plane,
                     int n, int c, int h, int w, int size, float least);

    // group_norm.h. kept: group_norm_kept() floats of each sample. The adjoint writes dx (NULL: not
    // wanted), dscale and dshift.
    void (*group_norm)(float *y, float *kept, const float *x, const float *scale,
                       const float *shift, int n, const struct group_norm *norm);
    void (*group_norm_back)(float *dx, float *dscale, float *dshift, const float *dy,
                            const float *kept, const float *x, const float *scale, int n,
                            const struct group_norm *norm);

    // Rows of m: probabilities; the maximum is taken off first.
    void (*softmax)(float *y, int n, int m);

    // One step on shared weights (HOGWILD). `state` is v or s, or NULL for sgd.
    void (*update)(float *w, float *state, const float *g, size_t n, const struct update *update);

    // `count` steps, one after the other, by gradients g[k] and updates u[k]: what that many
    // calls of update give, bit for bit. As many as UPDATES_MOST of one rule that follow each
    // other take one pass over the weights.
    void (*updates)(float *w, float *state, const float *const *g, const struct update *u,
                    int count, size_t n);

    // What one thread has changed in its copy since it began, added to the shared
    // weights (HOGWILD), which it takes over: shared += copy - begin; copy = begin =
    // shared.
    void (*merge)(float *shared, float *copy, float *begin, size_t n);

    // average += share (w - average), of weights that others may change (HOGWILD).
    void (*average)(float *average, const float *w, size_t n, float share);

    // y = a + b; relu(a + b); a + b where mask is above 0, and 0 elsewhere; y *= x; y += a x; the
    // sum of x^2; whether all n are finite; the largest |x|, which is not finite when some value is
    // not.
    void (*add)(float *y, const float *a, const float *b, size_t n);
    void (*add_relu)(float *y, const float *a, const float *b, size_t n);
    void (*add_above)(float *y, const float *a, const float *b, const float *mask, size_t n);
    void (*multiply)(float *y, const float *x, size_t n);
    void (*axpy)(float *y, const float *x, size_t n, float a);
    double (*sum_squares)(const float *x, size_t n);
    bool (*finite)(const float *x, size_t n);
    float (*largest)(const float *x, size_t n);

    // For measuring: as many multiply-adds as the registers of this family do at
    // best, in so many rounds; returns how many. *sum gets what they come to.
    uint64_t (*multiply_adds)(float *sum, uint64_t rounds);
    // Reads n floats and does next to nothing with them: the xor of their bits.
    uint32_t (*read)(const float *x, size_t n);
};

// What a step's three passes of n samples are expected to cost, in vector multiply-adds, with
// `lanes` samples a block, or plain (0).
double conv_cost(const struct kernels *kernels, const struct convolution *conv, int n, int lanes);

// The best table for this machine (cpu_level(), ADAM_CPU). Where that uses OpenBLAS it loads it.
const struct kernels *kernels_best(void);
// The table of one level, for tests; NULL when this machine lacks it. That of
// CPU_REF is plain C throughout, matrix products included.
const struct kernels *kernels_of(enum cpu_level level);

#endif
