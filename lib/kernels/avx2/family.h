// AVX2 and FMA: what the templates of the portable kernels need to know.
#ifndef ADAM_KERNELS_AVX2_FAMILY_H
#define ADAM_KERNELS_AVX2_FAMILY_H

#include <immintrin.h>

#define FAMILY(member) avx2_##member
#define FAMILY_LANES 8
#define FAMILY_ROWS 6 // 12 sums, 2 vectors of B and one broadcast of the 16 registers
#define FAMILY_TILE 4 // x 3 sums, 3 vectors and one broadcast
#define FAMILY_STORE(at, value, first, count)                                                      \
    __builtin_ia32_maskstoreps256((vector8 *)(at), lanes_between(first, (first) + (count)), value)
#define FAMILY_LOAD(at, first, count)                                                              \
    __builtin_ia32_maskloadps256((const vector8 *)(at), lanes_between(first, (first) + (count)))
#define FAMILY_REPEAT4(at) repeat_4(at)
#define FAMILY_JOIN(low, high) __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7)

typedef float vector8 __attribute__((vector_size(32), may_alias));
typedef int mask8 __attribute__((vector_size(32)));

// All bits of lanes [first, end).
static inline mask8 lanes_between(int first, int end) {
    mask8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    return (lane >= first) & (lane < end);
}

// 4 floats twice, by loads that need no shuffle across 128 bits (block/repeat.h).
static inline __m256 repeat_4(const float *at) {
    __m256 v;
    __asm__("vmovups %1, %x0\n\tvinsertf128 $1, %1, %0, %0"
            : "=x"(v)
            : "m"(*(const __m128_u *)(const void *)at));
    return v;
}

#include "kernels/themes.h"

THEME_KERNELS(KERNEL_DECLARE)

#endif
