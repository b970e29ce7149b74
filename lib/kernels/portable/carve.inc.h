// Pieces of scratch, each at a cache line's beginning where the scratch is.
#ifndef ADAM_KERNELS_PORTABLE_CARVE_INC_H
#define ADAM_KERNELS_PORTABLE_CARVE_INC_H

#include <stddef.h>

static float *carve(float **scratch, size_t floats) {
    float *piece = *scratch;
    *scratch += (floats + 15) & ~(size_t)15;
    return piece;
}

#endif
