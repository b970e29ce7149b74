// The c * lanes floats of one pixel, its run, as vectors: what the elementwise
// kernels of blocks share. A run is LANES floats at a time and then the rest, by
// the same code: with `count` the constant LANES the whole vectors are plain
// loads and stores.
//
// The family defines FAMILY_LOAD(at, first, count) and FAMILY_STORE(at, vector,
// first, count): lanes [first, first + count) of the vector at `at`; they touch no
// other memory, and the other lanes of what is loaded are zeros.
#ifndef ADAM_KERNELS_BLOCK_RUN_INC_H
#define ADAM_KERNELS_BLOCK_RUN_INC_H

#include "kernels/portable/lanes.inc.h"

// Floats behind what is read or written now that are asked for, where no prefetcher is early
// enough.
enum { RUN_AHEAD = 2048 };

typedef int32_t vector_int __attribute__((vector_size(4 * FAMILY_LANES), aligned(4), may_alias));

__attribute__((always_inline)) static inline vector load_lanes(const float *at, int first,
                                                               int count) {
    if (count == LANES)
        return *(const vector *)at;
    return FAMILY_LOAD(at, first, count);
}

__attribute__((always_inline)) static inline vector load_part(const float *at, int count) {
    return load_lanes(at, 0, count);
}

__attribute__((always_inline)) static inline void store_part(float *at, vector value, int count) {
    if (count == LANES)
        *(vector *)at = value;
    else
        FAMILY_STORE(at, value, 0, count);
}

__attribute__((always_inline)) static inline vector_int load_part_int(const int32_t *at,
                                                                      int count) {
    return (vector_int)load_part((const float *)(const void *)at, count);
}

__attribute__((always_inline)) static inline void store_part_int(int32_t *at, vector_int value,
                                                                 int count) {
    store_part((float *)(void *)at, (vector)value, count);
}

// The same address, of which the compiler does not know how it came about: otherwise it keeps one
// for each of n x n vectors, more than there are registers.
__attribute__((always_inline)) static inline const float *apart(const float *at) {
    __asm__("" : "+r"(at));
    return at;
}

__attribute__((always_inline)) static inline float *apart_to(float *at) {
    __asm__("" : "+r"(at));
    return at;
}

// Where `mask` has all bits set, a; where none, b. GCC's C has no ?: for vectors.
__attribute__((always_inline)) static inline vector_int choose_int(vector_int mask, vector_int a,
                                                                   vector_int b) {
    return (mask & a) | (~mask & b);
}

__attribute__((always_inline)) static inline vector choose(vector_int mask, vector a, vector b) {
    return (vector)choose_int(mask, (vector_int)a, (vector_int)b);
}

// Error gradients of the outputs y of a relu, taken back through it: `most` is its upper bound.
__attribute__((always_inline)) static inline vector through_relu(vector dy, vector y, float most) {
    return (vector)((y > 0) & (y < most) & (vector_int)dy);
}

#endif
