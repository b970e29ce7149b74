// The arithmetic: floats in, floats out. One table of functions, filled once at
// start: the reference in plain C first, then each faster family overwrites what
// it has. Nothing outside lib/kernels and lib/model knows a memory layout.
//
// Shapes: n samples, c channels (maps), h x w pixels, one sample behind the
// other, each c x h x w. Matrices are row-major. No kernel allocates.
//
// Blocks: the second layout, of the functions named *_block. A block holds `lanes`
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

// A window that slides over a picture: kernel, stride and padding of
// convolutions and pools. Output pixel (y, x) sees input rows
// y * stride_h - pad_h ... + kernel_h - 1, clipped to the picture.
struct window {
    int c, h, w;      // input
    int out_h, out_w; // output
    int kernel_h, kernel_w;
    int stride_h, stride_w;
    int pad_h, pad_w;
};

// The taps of all windows over one channel that fall on a pixel, not on padding: the
// multiply-adds that a convolution cannot do without, for each map and channel.
uint64_t window_taps(const struct window *window);

// Bytes of what maxpool_block keeps of each output, in the order of y.
size_t maxpool_winner_size(const struct window *window);

// No block has more samples.
enum { KERNELS_LANES_MOST = 16 };

struct convolution {
    struct window window;
    int maps, groups; // both c and maps are multiples of groups
};

// Floats of scratch that any family's conv functions need, whatever n is;
// SIZE_MAX when they do not fit in size_t.
size_t conv_scratch(const struct convolution *conv);

// Floats of scratch that any family's conv_block functions need, for any number
// of blocks; SIZE_MAX when they do not fit in size_t.
size_t conv_block_scratch(const struct convolution *conv);

// Floats of scratch that any family's dense function needs for n samples, that dense_step
// is faster with, and that dense_by_sums needs.
size_t dense_scratch(int n, int inputs);
size_t dense_step_scratch(int n, int units, int inputs);
size_t dense_kept_scratch(int n, int units, int inputs);

enum conv_pass { CONV_FORWARD, CONV_BACK_INPUT, CONV_BACK_WEIGHTS };

// One step of an update rule; g is the gradient.
//   sgd       w -= rate (g + decay w)
//   momentum  v = momentum v + g + decay w; w -= rate v
//   adagrad   s += (g + decay w)^2; w -= rate (g + decay w) / (sqrt(s) + epsilon)
enum rule { RULE_SGD, RULE_MOMENTUM, RULE_ADAGRAD };

struct update {
    enum rule rule;
    float rate, decay;
    float momentum, epsilon;
};

// Steps that updates takes in one pass.
enum { UPDATES_MOST = 4 };

// The error gradients of a dense layer for n samples. The gradient of its weights (units x
// inputs) is the product dy^T x.
struct dense_errors {
    const float *dy; // n x units
    const float *x;  // n x inputs: what the layer saw
    float *dx;       // n x inputs: the error gradients dy W of x, to write; NULL: not wanted
    bool add;        // them to what is in dx
    int n, units, inputs;
    int of;    // units of the layer of which these are a part; 0: these are all
    int first; // unit at which dense_step begins, see dense
    // For dense_step: dense_step_scratch() floats; NULL: many samples take longer.
    float *scratch;
};

struct kernels {
    const char *name; // "ref", "avx2+openblas", ... for --version
    int lanes;        // floats in a vector register; 0: this family has no blocks

    // C (m x n) = alpha op(A) op(B) + beta C, where op(A) is m x k, op(B) k x n,
    // and op transposes when asked to. ld*: floats from row to row as stored.
    void (*gemm)(bool transpose_a, bool transpose_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

    // Convolutions of n pictures: y (n x maps x out pixels), weights (maps x
    // c/groups x kernel_h x kernel_w), without bias; the error gradients of the pictures;
    // the gradient of the weights. The last two write all of their results.
    // `scratch` has conv_scratch() floats.
    void (*conv)(float *y, const float *x, const float *weights, int n,
                 const struct convolution *conv, float *scratch);
    void (*conv_back_input)(float *dx, const float *dy, const float *weights, int n,
                            const struct convolution *conv, float *scratch);
    void (*conv_back_weights)(float *dweights, const float *dy, const float *x, int n,
                              const struct convolution *conv, float *scratch);

    // The way that a pass of a convolution of this shape takes, for people: "direct",
    // "columns", "product"... `lanes` of its blocks; 0: plain samples.
    const char *(*conv_way)(enum conv_pass pass, const struct convolution *conv, int lanes);

    // What one output pixel (out_y, out_x) sees of n pictures: n rows of
    // c*kernel_h*kernel_w; and the adjoint, which adds into the pictures.
    void (*patch)(float *rows, const float *pictures, int n, const struct window *window, int out_y,
                  int out_x);
    void (*patch_add)(float *pictures, const float *rows, int n, const struct window *window,
                      int out_y, int out_x);

    // y[i][j] += bias[j] over n rows of m; gradient[j] = sum of rows. For maps,
    // each bias stands for `pixels` values in a row.
    void (*bias_add)(float *y, const float *bias, int n, int m, int pixels);
    void (*bias_sum)(float *gradient, const float *dy, int n, int m, int pixels);

    // Activations in place, and their error gradients in place from the outputs y:
    // "delta * F'(a)" of Adam 2.2.
    void (*relu)(float *y, size_t n);
    void (*relu_back)(float *dy, const float *y, size_t n);
    void (*tanh)(float *y, size_t n);
    void (*tanh_back)(float *dy, const float *y, size_t n);
    void (*sigmoid)(float *y, size_t n);
    void (*sigmoid_back)(float *dy, const float *y, size_t n);

    // Pools over n samples. maxpool keeps in `winner` the place of each maximum
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

    // Dense layers: y (n x units) = x W^T + biases (NULL: none), with shared W of units
    // x inputs (HOGWILD); the error gradients of x; the gradient of the weights; or both at
    // once, by one pass over the weights: dx from each weight as it was, and the step
    // that the gradient asks for, which is never stored. `scratch` has dense_scratch()
    // floats. They begin at unit `first` (less than units) and go round: threads that
    // share weights begin at different ones, since what one has just changed another
    // would wait for.
    void (*dense)(float *y, const float *x, const float *weights, const float *biases, int n,
                  int units, int inputs, int first, float *scratch);
    void (*dense_back_input)(const struct dense_errors *errors, const float *weights);
    void (*dense_back_weights)(float *dweights, const struct dense_errors *errors);
    void (*dense_step)(float *weights, float *state, const struct dense_errors *errors,
                       const struct update *update);

    // The same y from weights that stay as they are over many passes, with something that is
    // kept of them: by Strassen's scheme sums of weights, in fixed point 16 bits of each.
    // dense_kept_size is how many floats that takes, 0 where n samples would not be faster:
    // then the other two may be missing. dense_keep makes them, the same for any n; false:
    // these weights do not suit. dense_by_kept gives y; false, and y as it was: these inputs
    // do not suit. `kept` lies at a multiple of 64 bytes; `scratch` has dense_kept_scratch()
    // floats.
    // Rounding: by Strassen's scheme of 5e-7 of the largest norm of a sample times the largest
    // of a unit's weights (portable/dense_strassen.inc.h); in fixed point of 2e-5 of the norm of
    // the sample times that of the unit's weights, at 1000 inputs (portable/dense_fixed.inc.h).
    size_t (*dense_kept_size)(int n, int units, int inputs);
    bool (*dense_keep)(float *kept, const float *weights, int units, int inputs);
    bool (*dense_by_kept)(float *y, const float *x, const float *weights, const float *kept,
                          const float *biases, int n, int units, int inputs, float *scratch);
    const char *dense_kept_way; // for people: "strassen", "fixed"

    // The way that a pass of dense layers of n samples takes, the step by sgd included, for
    // people: "stream", "panels", "strips", "product".
    const char *(*dense_way)(enum conv_pass pass, int n);

    // Plain samples to blocks and back. c x pixels each.
    void (*block)(float *blocks, const float *samples, int n, int c, int pixels, int lanes);
    void (*unblock)(float *samples, const float *blocks, int n, int c, int pixels, int lanes);

    // Convolutions of blocks. The forward one adds the biases and, when told to,
    // applies relu; the last one also sums up the gradient of the biases.
    // `scratch` has conv_block_scratch() floats.
    void (*conv_block)(float *y, const float *x, const float *weights, const float *biases,
                       bool relu, int blocks, int lanes, const struct convolution *conv,
                       float *scratch);
    void (*conv_block_back_input)(float *dx, const float *dy, const float *weights, int blocks,
                                  int lanes, const struct convolution *conv, float *scratch);
    void (*conv_block_back_weights)(float *dweights, float *dbiases, const float *dy,
                                    const float *x, int blocks, int lanes,
                                    const struct convolution *conv, float *scratch);

    // The same by Winograd's minimal filtering, for square kernels of 3 and 5 at stride
    // 1 in blocks of as many lanes as there are; and where it is expected to be faster
    // (ADAM_WINOGRAD=0: never).
    // Rounding: of 1e-6 of the sum of magnitudes (block/winograd.inc.h).
    bool (*winograd_block_fits)(enum conv_pass pass, const struct convolution *conv, int lanes);
    void (*winograd_block)(float *y, const float *x, const float *weights, const float *biases,
                           bool relu, int blocks, int lanes, const struct convolution *conv,
                           float *scratch);
    // relu: NULL, or the outputs x of a relu through which dx goes on, where they are above 0.
    void (*winograd_block_back_input)(float *dx, const float *dy, const float *weights,
                                      const float *relu, int blocks, int lanes,
                                      const struct convolution *conv, float *scratch);
    void (*winograd_block_back_weights)(float *dweights, float *dbiases, const float *dy,
                                        const float *x, int blocks, int lanes,
                                        const struct convolution *conv, float *scratch);

    // The pools and norms above, of blocks. winner, maxpool_winner_size() bytes for each
    // output, holds what the adjoint needs to find the maxima; lrn's scale, which holds what
    // its adjoint needs, and lcn's v have the layout of x; lcn's s is blocks x h*w x lanes,
    // its plane 2 * h*w * lanes floats. avgpool_block_back's relu: see
    // winograd_block_back_input; it may lie where dx does.
    void (*maxpool_block)(float *y, void *winner, const float *x, int blocks, int lanes,
                          const struct window *window, bool relu);
    void (*maxpool_block_back)(float *dx, const float *dy, const void *winner, int blocks,
                               int lanes, const struct window *window);
    void (*avgpool_block)(float *y, const float *x, int blocks, int lanes,
                          const struct window *window);
    void (*avgpool_block_back)(float *dx, const float *dy, const float *relu, int blocks, int lanes,
                               const struct window *window);
    void (*l2pool_block)(float *y, const float *x, int blocks, int lanes,
                         const struct window *window);
    void (*l2pool_block_back)(float *dx, const float *dy, const float *y, const float *x,
                              int blocks, int lanes, const struct window *window);
    void (*lrn_block)(float *y, float *scale, const float *x, int blocks, int lanes, int c,
                      int pixels, int size, float alpha, float beta, float k);
    // dx may be x.
    void (*lrn_block_back)(float *dx, const float *dy, const float *y, const float *scale,
                           const float *x, bool relu, int blocks, int lanes, int c, int pixels,
                           int size, float alpha, float beta);
    void (*lcn_block)(float *y, float *v, float *s, const float *x, int blocks, int lanes, int c,
                      int h, int w, int size, float least);
    void (*lcn_block_back)(float *dx, const float *dy, const float *v, const float *s, float *plane,
                           int blocks, int lanes, int c, int h, int w, int size, float least);

    // y *= x; y += a x; the sum of x^2; whether all n are finite; the largest |x|,
    // which is not finite when some value is not.
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
