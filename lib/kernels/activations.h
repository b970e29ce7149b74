// Activations F, and what takes error gradients back through them: "delta * F'(a)" of Adam 2.2.
#ifndef ADAM_KERNELS_ACTIVATIONS_H
#define ADAM_KERNELS_ACTIVATIONS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

enum act {
    ACT_LINEAR,
    ACT_RELU,
    ACT_TANH,
    ACT_SIGMOID,
    ACT_LEAKY,     // x, below 0 slope * x
    ACT_ELU,       // x, below 0 e^x - 1 (Clevert 2015)
    ACT_SOFTPLUS,  // ln(1 + e^x)
    ACT_RELU6,     // max(0, min(x, 6)) (Howard 2017)
    ACT_GELU,      // x Phi(x), Phi that of the normal distribution (Hendrycks 2016)
    ACT_SILU,      // x sigmoid(x) (Elfwing 2017)
    ACT_HARDSWISH, // x max(0, min(x + 3, 6)) / 6 (Howard 2019)
    ACT_COUNT
};

// Those that fall for some x and grow for others: F(x) does not tell F'(x), and `back` reads x.
static inline bool act_reads_inputs(enum act act) {
    return act >= ACT_GELU;
}

// The upper bound of a relu, INFINITY where it has none; 0: it is no relu.
static inline float act_relu_bound(enum act act) {
    return act == ACT_RELU ? INFINITY : act == ACT_RELU6 ? 6 : 0;
}

// Only ACT_LEAKY looks at `slope`. What is no number stays none.
struct activation {
    void (*forward)(float *y, size_t n, float slope); // y: x before, F(x) afterwards
    // dy *= F'(x); `from` is y, or x where act_reads_inputs.
    void (*back)(float *dy, const float *from, size_t n, float slope);
};

#endif
