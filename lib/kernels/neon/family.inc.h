// NEON, which every 64-bit ARM processor has: what the templates of the portable kernels need to
// know.
#ifndef ADAM_KERNELS_NEON_FAMILY_INC_H
#define ADAM_KERNELS_NEON_FAMILY_INC_H

#include <stdint.h>

#define FAMILY(function) neon_##function
#define FAMILY_LANES 4
#define FAMILY_REGISTERS 32
#define FAMILY_ROWS 14 // 28 sums, 2 vectors of B and one broadcast of the 32 registers
#define FAMILY_TILE 4  // x 3 sums, 3 vectors and one broadcast; no more units than lanes
#define FAMILY_STORE(at, value, first, count) store_between(at, value, first, (first) + (count))
#define FAMILY_LOAD(at, first, count) load_between(at, first, (first) + (count))
// Lane by lane: x where it is larger than y, else y; and a where it is, else b.
#define FAMILY_LARGER(x, y) choose((x) > (y), x, y)
#define FAMILY_WHERE_LARGER(x, y, a, b) choose_int((x) > (y), a, b)
// The first `count` lanes from as many bytes, and to them: numbers of 0 to 255.
#define FAMILY_WIDEN(at, count) (vector_int) load_bytes(at, count)
#define FAMILY_NARROW(at, value, count) store_bytes(at, (lanes_int)(value), count)
#define FAMILY_JOIN(low, high) __builtin_shufflevector(low, high, 0, 1, 2, 3)

#define FAMILY_INLINE __attribute__((always_inline)) static inline

typedef float lanes_float __attribute__((vector_size(16)));
typedef int32_t lanes_int __attribute__((vector_size(16)));

// Lanes [first, end), and zeros in the others.
FAMILY_INLINE lanes_float load_between(const float *at, int first, int end) {
    lanes_float v = {0};
#pragma GCC unroll 4
    for (int i = 0; i < FAMILY_LANES; i++)
        if (i >= first && i < end)
            v[i] = at[i];
    return v;
}

FAMILY_INLINE void store_between(float *at, lanes_float v, int first, int end) {
#pragma GCC unroll 4
    for (int i = 0; i < FAMILY_LANES; i++)
        if (i >= first && i < end)
            at[i] = v[i];
}

FAMILY_INLINE lanes_int load_bytes(const uint8_t *at, int count) {
    lanes_int v = {0};
#pragma GCC unroll 4
    for (int i = 0; i < FAMILY_LANES; i++)
        if (i < count)
            v[i] = at[i];
    return v;
}

FAMILY_INLINE void store_bytes(uint8_t *at, lanes_int v, int count) {
#pragma GCC unroll 4
    for (int i = 0; i < FAMILY_LANES; i++)
        if (i < count)
            at[i] = (uint8_t)v[i];
}

#include "kernels/themes.inc.h"

#endif
