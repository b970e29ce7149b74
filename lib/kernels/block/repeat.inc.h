// Loads that repeat: with `lanes` samples in a block, a vector of error gradients or sums holds
// LANES / lanes maps, and the values of one pixel and channel are repeated beside each of them.
//
// On Zen 5 shuffles across 128 bits, and loads that repeat 128 or 256 bits (vbroadcastf32x4, x8),
// compete with multiply-adds. These do not: loads that repeat 32 or 64 bits, insertions from
// memory (vinsertf64x4), and shuffles within 128 bits (vpermilps, vunpcklpd).
//
// The family defines FAMILY_REPEAT4(at) when its vectors are longer than 4, and FAMILY_REPEAT8(at)
// when they are longer than 8.
#ifndef ADAM_KERNELS_BLOCK_REPEAT_INC_H
#define ADAM_KERNELS_BLOCK_REPEAT_INC_H

#include "kernels/portable/lanes.inc.h"

typedef double twin __attribute__((aligned(4), may_alias));
typedef double twins __attribute__((vector_size(4 * FAMILY_LANES)));

// `count` numbers, over and over.
__attribute__((always_inline)) static inline vector repeat(int count, const float *at) {
    if (count == 1)
        return *at - (vector){0};
    if (count == 2)
        return (vector)(*(const twin *)at - (twins){0});
#if FAMILY_LANES > 4
    if (count == 4)
        return FAMILY_REPEAT4(at);
#endif
#if FAMILY_LANES > 8
    if (count == 8)
        return FAMILY_REPEAT8(at);
#endif
    return *(const vector *)at; // as many as a vector has
}

#endif
