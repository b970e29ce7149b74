// Matrix products and dense layers.
#ifndef ADAM_KERNELS_DENSE_H
#define ADAM_KERNELS_DENSE_H

#include <stdbool.h>
#include <stddef.h>

struct update;

// The error gradients of a dense layer for n samples. The gradient of its weights (units x
// inputs) is the product dy^T x.
struct dense_errors {
    const float *dy; // n x units
    const float *x;  // n x inputs: what the layer saw
    float *dx;       // n x inputs: the error gradients dy W of x, to write; NULL: not wanted
    bool add;        // them to what is in dx
    int n, units, inputs;
    int of;    // units of the layer of which these are a part; 0: these are all
    int first; // unit at which a step begins, see dense_kernels
    // For a step: dense_step_scratch() floats; NULL: many samples take longer.
    float *scratch;
};

// Floats of scratch that the forward pass of any family needs for n samples, that its step is
// faster with, and that the forward pass by kept weights needs.
size_t dense_scratch(int n, int inputs);
size_t dense_step_scratch(int n, int units, int inputs);
size_t dense_kept_scratch(int n, int units, int inputs);

struct dense_kernels {
    // C (m x n) = alpha op(A) op(B) + beta C, where op(A) is m x k, op(B) k x n,
    // and op transposes when asked to. ld*: floats from row to row as stored.
    void (*gemm)(bool transpose_a, bool transpose_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

    // y (n x units) = x W^T + biases (NULL: none), with shared W of units x inputs (HOGWILD);
    // the error gradients of x; the gradient of the weights; or both at once, by one pass over the
    // weights: dx from each weight as it was, and the step that the gradient asks for, which is
    // never stored. `scratch` has dense_scratch() floats. They begin at unit `first` (less than
    // units) and go round: threads that share weights begin at different ones, since what one has
    // just changed another would wait for.
    void (*forward)(float *y, const float *x, const float *weights, const float *biases, int n,
                    int units, int inputs, int first, float *scratch);
    void (*back_input)(const struct dense_errors *errors, const float *weights);
    void (*back_weights)(float *dweights, const struct dense_errors *errors);
    void (*step)(float *weights, float *state, const struct dense_errors *errors,
                 const struct update *update);

    // The way that the forward pass of n samples takes, or the backward ones, the step by sgd
    // included, for people: "stream", "panels", "strips", "product".
    const char *(*way)(bool forward, int n);
};

// The forward pass by weights that stay as they are over many passes, with something that is
// kept of them: by Strassen's scheme sums of weights, in fixed point 16 bits of each. `kept` lies
// at a multiple of 64 bytes.
struct dense_kept_kernels {
    // How many floats are kept; 0 where n samples would not be faster: then the other two may be
    // missing.
    size_t (*size)(int n, int units, int inputs);
    // Makes them, the same for any n; false: these weights do not suit.
    bool (*keep)(float *kept, const float *weights, int units, int inputs);
    // Gives y; false, and y as it was: these inputs do not suit. `scratch` has
    // dense_kept_scratch() floats.
    // Rounding: by Strassen's scheme of 5e-7 of the largest norm of a sample times the largest
    // of a unit's weights (portable/dense_strassen.inc.h); in fixed point of 2e-5 of the norm of
    // the sample times that of the unit's weights, at 1000 inputs (portable/dense_fixed.inc.h).
    bool (*forward)(float *y, const float *x, const float *weights, const float *kept,
                    const float *biases, int n, int units, int inputs, float *scratch);
    const char *way; // for people: "strassen", "fixed"
};

#endif
