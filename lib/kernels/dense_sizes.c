#include "kernels/dense_sizes.h"

#include "kernels/kernels.h"

size_t dense_scratch(int n, int inputs) {
    size_t most = DENSE_VECTORS * KERNELS_LANES_MOST;
    size_t samples = ((size_t)n + KERNELS_LANES_MOST - 1) / KERNELS_LANES_MOST * KERNELS_LANES_MOST;
    size_t depth = inputs < DENSE_DEPTH ? (size_t)inputs : DENSE_DEPTH;
    return n <= DENSE_STREAM_MOST ? 0 : (samples < most ? samples : most) * depth;
}
