// AVX2 and FMA: what the templates of the portable kernels need to know.
#ifndef ADAM_KERNELS_AVX2_FAMILY_INC_H
#define ADAM_KERNELS_AVX2_FAMILY_INC_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define FAMILY(function) avx2_##function
#define FAMILY_LANES 8
#define FAMILY_REGISTERS 16
#define FAMILY_ROWS 6 // 12 sums, 2 vectors of B and one broadcast of the 16 registers
#define FAMILY_TILE 4 // x 3 sums, 3 vectors and one broadcast
#define FAMILY_STORE(at, value, first, count)                                                      \
    __builtin_ia32_maskstoreps256((vector8 *)(at), lanes_between(first, (first) + (count)), value)
#define FAMILY_LOAD(at, first, count)                                                              \
    __builtin_ia32_maskloadps256((const vector8 *)(at), lanes_between(first, (first) + (count)))
// Lane by lane: x where it is larger than y, else y; and a where it is, else b.
#define FAMILY_LARGER(x, y) (vector) _mm256_max_ps(x, y)
#define FAMILY_WHERE_LARGER(x, y, a, b)                                                            \
    (vector_int) _mm256_blendv_ps((__m256)(b), (__m256)(a), _mm256_cmp_ps(x, y, _CMP_GT_OQ))
// The first `count` lanes from as many bytes, and to them: numbers of 0 to 255.
#define FAMILY_WIDEN(at, count) (vector_int) load_bytes(at, count)
#define FAMILY_NARROW(at, value, count) store_bytes(at, (__m256i)(value), count)
// Dense layers in fixed point: 12 sums, 2 vectors of weights and one of a sample.
#define FAMILY_FIXED_SAMPLES 6
#define FAMILY_FIXED_VECTORS 1
#define FAMILY_DOT(sum, bytes, weights)                                                            \
    (vector_int) add_products_of_bytes((__m256i)(sum), (__m256i)(bytes), (__m256i)(weights))
#define FAMILY_REPEAT4(at) repeat_4(at)
#define FAMILY_JOIN(low, high) __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7)

typedef float vector8 __attribute__((vector_size(32), may_alias));
typedef int mask8 __attribute__((vector_size(32)));

// All bits of lanes [first, end).
static inline mask8 lanes_between(int first, int end) {
    mask8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    return (lane >= first) & (lane < end);
}

// 4 floats twice, by loads that need no shuffle across 128 bits (block/repeat.inc.h).
static inline __m256 repeat_4(const float *at) {
    __m256 v;
    __asm__("vmovups %1, %x0\n\tvinsertf128 $1, %1, %0, %0"
            : "=x"(v)
            : "m"(*(const __m128_u *)(const void *)at));
    return v;
}

static inline __m256i load_bytes(const uint8_t *at, int count) {
    uint64_t bytes = 0;
    if (count == 8)
        memcpy(&bytes, at, 8);
    else
        for (int i = 0; i < count; i++)
            bytes |= (uint64_t)at[i] << 8 * i;
    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)bytes));
}

static inline void store_bytes(uint8_t *at, __m256i value, int count) {
    __m128i low = _mm256_castsi256_si128(value), high = _mm256_extracti128_si256(value, 1);
    __m128i words = _mm_packs_epi32(low, high);
    uint64_t bytes = (uint64_t)_mm_cvtsi128_si64(_mm_packus_epi16(words, words));
    if (count == 8)
        memcpy(at, &bytes, 8);
    else
        for (int i = 0; i < count; i++)
            at[i] = (uint8_t)(bytes >> 8 * i);
}

// AVX-VNNI: to each lane of sums those of 4 products of bytes, of `bytes` without sign. As
// intrinsics, compilers keep not all sums of a tile in registers.
static inline __m256i add_products_of_bytes(__m256i sums, __m256i bytes, __m256i weights) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(bytes), "x"(weights));
    return sums;
}

#include "kernels/themes.inc.h"

#endif
