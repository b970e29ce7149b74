// Sizes that dense layers and their scratch agree on. Inside lib/kernels.
#ifndef ADAM_KERNELS_DENSE_SIZES_H
#define ADAM_KERNELS_DENSE_SIZES_H

#include <stdbool.h>
#include <stddef.h>

enum {
    // Samples up to which weights stream forward: with more, products take longer than loading
    // the weights from memory. With 8 lanes panels of two vectors hold the sums of all in
    // registers from fewer samples on; and where weights need not come from memory, samples that
    // fill their vectors, which are more than the least.
    DENSE_STREAM_MOST = 16,
    DENSE_STREAM_MOST_8 = 12,
    DENSE_STREAM_LEAST = 6,
    // Beyond: vectors of samples, and inputs of each, that are turned at once
    // (portable/dense_forward.inc.h). With 16 lanes 640 KiB, for an L2 cache.
    DENSE_VECTORS = 8,
    DENSE_DEPTH = 1280,
    // Samples that a step takes at once: their inputs and error gradients stay in the caches
    // (portable/dense_tiles.inc.h).
    DENSE_STEP_MOST = 256,
};

// Whether the weights of a layer come from memory each time.
bool weights_far(size_t units, size_t inputs);

// Whether kept sums of weights make n samples faster (portable/dense_strassen.inc.h).
bool strassen_pays(int n, int units, int inputs);

// Whether kept weights in fixed point make any number of samples faster, and their products
// can be added up (portable/dense_fixed.inc.h).
bool fixed_pays(int units, int inputs);

#endif
