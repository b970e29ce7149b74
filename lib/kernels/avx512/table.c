// The portable kernels compiled for AVX-512, with our own products and convolutions.
#include <immintrin.h>

#include "kernels/tables.h"

#define FAMILY_TABLE kernels_avx512
#define FAMILY_NAME "AVX-512"
#define FAMILY_LANES 16
#define FAMILY_ROWS 14 // 28 sums, 2 vectors of B and one broadcast of the 32 registers
#define FAMILY_GEMM gemm
#define FAMILY_CONV(pass) conv_direct##pass
#define FAMILY_DENSE(pass) dense##pass
#define FAMILY_STORE(at, value, first, count)                                                      \
    __builtin_ia32_storeups512_mask(at, value, (unsigned short)(((1u << (count)) - 1) << (first)))
#define FAMILY_LOAD(at, first, count)                                                              \
    __builtin_ia32_loadups512_mask(at, (vector){0},                                                \
                                   (unsigned short)(((1u << (count)) - 1) << (first)))
#define FAMILY_REPEAT4(at) _mm512_broadcast_f32x4(_mm_loadu_ps(at))
#define FAMILY_REPEAT8(at) _mm512_broadcast_f32x8(_mm256_loadu_ps(at))
#define FAMILY_JOIN(low, high)                                                                     \
    __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#include "kernels/portable/conv_direct.h"
#include "kernels/portable/dense.h"

#include "kernels/portable/all.h"
