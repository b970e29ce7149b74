#include "kernels/dense_sizes.h"

#include "kernels/kernels.h"

enum { SUMS_SAMPLES = 128, SUMS_UNITS = 512, SUMS_INPUTS = 1024 }; // the fewest that pay

bool dense_sums_pay(int n, int units, int inputs) {
    return n >= SUMS_SAMPLES && units >= SUMS_UNITS && inputs >= SUMS_INPUTS;
}

size_t dense_sums_scratch(int n, int units, int inputs) {
    size_t most = 2 * DENSE_VECTORS * KERNELS_LANES_MOST;
    size_t samples = (size_t)n < most ? (size_t)n : most;
    return dense_scratch(n, inputs) +
           (dense_sums_pay(n, units, inputs) ? samples * (size_t)units : 0);
}

size_t dense_scratch(int n, int inputs) {
    size_t most = DENSE_VECTORS * KERNELS_LANES_MOST;
    size_t samples = ((size_t)n + KERNELS_LANES_MOST - 1) / KERNELS_LANES_MOST * KERNELS_LANES_MOST;
    size_t depth = inputs < DENSE_DEPTH ? (size_t)inputs : DENSE_DEPTH;
    return n <= DENSE_STREAM_MOST ? 0 : (samples < most ? samples : most) * depth;
}
