// Group normalisation (Wu and He 2018) and layer normalisation (Ba 2016): of each sample, the
// values of each group of maps less their mean, divided by their deviation,
//   x^ = (x - mean) / sqrt(variance + epsilon),   y = scale * x^ + shift.
#ifndef ADAM_KERNELS_GROUP_NORM_H
#define ADAM_KERNELS_GROUP_NORM_H

#include <stdbool.h>

struct group_norm {
    int c, pixels;
    int groups; // of maps; c is a multiple of it
    bool each;  // scale and shift are of each value, not of each map: plain samples only
    float epsilon;
};

// Floats that are kept of each sample, from the forward pass to its adjoint.
static inline int group_norm_kept(const struct group_norm *norm) {
    return 2 * norm->groups;
}

// Floats of scratch for blocks.
static inline int group_norm_scratch(const struct group_norm *norm, int lanes) {
    return 5 * (norm->c / norm->groups) * lanes;
}

#endif
