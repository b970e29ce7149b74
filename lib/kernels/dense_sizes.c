#include "kernels/dense_sizes.h"

#include "kernels/blocks.h"
#include "kernels/dense.h"

// More do not stay in the caches.
enum { FAR_WEIGHTS = 1 << 20 };
// Strassen's scheme gains 4% or more from here on.
enum { SUMS_SAMPLES = 128, SUMS_UNITS = 512, SUMS_INPUTS = 1024 };
// Fixed point gains with any number of samples from here on.
enum {
    FIXED_UNITS_LEAST = 64,
    FIXED_INPUTS_LEAST = 256,
    FIXED_INPUTS_MOST = 32768, // two products of bytes each fill a sum of 32 bits
    FIXED_WEIGHTS_LEAST = 1 << 20,
};
// Panels of fewer units, unless their rows are long, cost more than they save.
enum {
    STEP_SAMPLES = 32,
    STEP_UNITS = 1024,
    STEP_WEIGHTS = 1 << 20,
    STEP_WIDTH = 3 * KERNELS_LANES_MOST,
};

bool weights_far(size_t units, size_t inputs) {
    return units * inputs > FAR_WEIGHTS;
}

bool strassen_pays(int n, int units, int inputs) {
    return n >= SUMS_SAMPLES && units >= SUMS_UNITS && inputs >= SUMS_INPUTS;
}

bool fixed_pays(int units, int inputs) {
    return units >= FIXED_UNITS_LEAST && inputs >= FIXED_INPUTS_LEAST &&
           inputs <= FIXED_INPUTS_MOST && (size_t)units * (size_t)inputs >= FIXED_WEIGHTS_LEAST;
}

static size_t strassen_scratch(int n, int units, int inputs) {
    size_t most = 2 * DENSE_VECTORS * KERNELS_LANES_MOST;
    size_t samples = (size_t)n < most ? (size_t)n : most;
    return dense_scratch(n, inputs) +
           (strassen_pays(n, units, inputs) ? samples * (size_t)units : 0);
}

// Two bytes for each input, in whole vectors, and four floats.
static size_t fixed_scratch(int n, int units, int inputs) {
    size_t vectors = ((size_t)inputs + KERNELS_LANES_MOST - 1) / KERNELS_LANES_MOST;
    return fixed_pays(units, inputs) ? (size_t)n * (vectors * KERNELS_LANES_MOST / 2 + 4) : 0;
}

size_t dense_kept_scratch(int n, int units, int inputs) {
    size_t strassen = strassen_scratch(n, units, inputs), fixed = fixed_scratch(n, units, inputs);
    return strassen > fixed ? strassen : fixed;
}

size_t dense_scratch(int n, int inputs) {
    size_t most = DENSE_VECTORS * KERNELS_LANES_MOST;
    size_t samples = ((size_t)n + KERNELS_LANES_MOST - 1) / KERNELS_LANES_MOST * KERNELS_LANES_MOST;
    size_t depth = inputs < DENSE_DEPTH ? (size_t)inputs : DENSE_DEPTH;
    return n <= DENSE_STREAM_LEAST ? 0 : (samples < most ? samples : most) * depth;
}

size_t dense_step_scratch(int n, int units, int inputs) {
    size_t samples = n < DENSE_STEP_MOST ? (size_t)n : DENSE_STEP_MOST;
    size_t width = ((size_t)inputs + STEP_WIDTH - 1) / STEP_WIDTH * STEP_WIDTH;
    bool pays = units >= STEP_UNITS || (size_t)units * (size_t)inputs >= STEP_WEIGHTS;
    return n >= STEP_SAMPLES && pays ? 2 * samples * width : 0;
}
