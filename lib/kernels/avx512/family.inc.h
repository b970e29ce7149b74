// AVX-512: what the templates of the portable kernels need to know.
#ifndef ADAM_KERNELS_AVX512_FAMILY_INC_H
#define ADAM_KERNELS_AVX512_FAMILY_INC_H

#include <immintrin.h>

typedef double double_u __attribute__((aligned(4), may_alias));

#define FAMILY(function) avx512_##function
#define FAMILY_LANES 16
#define FAMILY_REGISTERS 32
#define FAMILY_ROWS 14 // 28 sums, 2 vectors of B and one broadcast of the 32 registers
#define FAMILY_TILE 8  // x 3 sums, 3 vectors and one broadcast
#define FAMILY_STORE(at, value, first, count)                                                      \
    __builtin_ia32_storeups512_mask(at, value, (unsigned short)(((1u << (count)) - 1) << (first)))
#define FAMILY_LOAD(at, first, count)                                                              \
    __builtin_ia32_loadups512_mask(at, (vector){0},                                                \
                                   (unsigned short)(((1u << (count)) - 1) << (first)))
// Lane by lane: x where it is larger than y, else y; and a where it is, else b.
#define FAMILY_LARGER(x, y) (vector) _mm512_max_ps(x, y)
#define FAMILY_WHERE_LARGER(x, y, a, b)                                                            \
    (vector_int)                                                                                   \
        _mm512_mask_mov_epi32((__m512i)(b), _mm512_cmp_ps_mask(x, y, _CMP_GT_OQ), (__m512i)(a))
// The first `count` lanes from as many bytes, and to them: numbers of 0 to 255.
#define FAMILY_WIDEN(at, count)                                                                    \
    (vector_int)                                                                                   \
        _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8((unsigned short)((1u << (count)) - 1), at))
#define FAMILY_NARROW(at, value, count)                                                            \
    _mm_mask_storeu_epi8(at, (unsigned short)((1u << (count)) - 1),                                \
                         _mm512_cvtepi32_epi8((__m512i)(value)))
// Dense layers in fixed point: 24 sums, 6 vectors of weights and one of a sample.
#define FAMILY_FIXED_SAMPLES 4
#define FAMILY_FIXED_VECTORS 3
#define FAMILY_DOT(sum, bytes, weights)                                                            \
    (vector_int) add_products_of_bytes((__m512i)(sum), (__m512i)(bytes), (__m512i)(weights))
#define FAMILY_REPEAT8(at) repeat_8(at)
#define FAMILY_REPEAT4(at) repeat_4(at)
#define FAMILY_JOIN(low, high)                                                                     \
    __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)

// 8 floats twice, and 4 of them four times, by loads that need no shuffle across 128
// bits (block/repeat.inc.h): of intrinsics, compilers make one.
static inline __m512 repeat_8(const float *at) {
    __m512 v;
    __asm__("vmovups %1, %t0\n\tvinsertf64x4 $1, %1, %0, %0"
            : "=v"(v)
            : "m"(*(const __m256_u *)(const void *)at));
    return v;
}

static inline __m512 repeat_4(const float *at) {
    __m512d v = _mm512_set1_pd(*(const double_u *)(const void *)at);
    __asm__("vunpcklpd %1%{1to8%}, %0, %0"
            : "+v"(v)
            : "m"(((const double_u *)(const void *)at)[1]));
    return _mm512_castpd_ps(v);
}

// VNNI: to each lane of sums those of 4 products of bytes, of `bytes` without sign. As
// intrinsics, compilers keep not all sums of a tile in registers.
static inline __m512i add_products_of_bytes(__m512i sums, __m512i bytes, __m512i weights) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(bytes), "v"(weights));
    return sums;
}

#include "kernels/themes.inc.h"

#endif
