#include "kernels/dense_sizes.h"

#include "kernels/kernels.h"

enum { SUMS_SAMPLES = 128, SUMS_UNITS = 512, SUMS_INPUTS = 1024 }; // the fewest that pay
// Panels of fewer units cost more than they save.
enum { STEP_SAMPLES = 32, STEP_UNITS = 1024, STEP_WIDTH = 3 * KERNELS_LANES_MOST };

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

size_t dense_step_scratch(int n, int units, int inputs) {
    size_t samples = n < DENSE_STEP_MOST ? (size_t)n : DENSE_STEP_MOST;
    size_t width = ((size_t)inputs + STEP_WIDTH - 1) / STEP_WIDTH * STEP_WIDTH;
    return n >= STEP_SAMPLES && units >= STEP_UNITS ? 2 * samples * width : 0;
}
