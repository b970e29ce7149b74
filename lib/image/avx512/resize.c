#if defined(__AVX512BW__)
#include <immintrin.h>

#include "image/resize_kernels.h"

static __m512i add_pair(__m512i sum, __m512i pair, __m512i weights) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(pair, weights));
}

static __m512i weight_pair(const int16_t *weights, int t, int taps) {
    uint32_t pair = (uint16_t)weights[t];
    if (t + 1 < taps)
        pair |= (uint32_t)(uint16_t)weights[t + 1] << 16;
    return _mm512_set1_epi32((int)pair);
}

static __mmask64 first_bits(size_t n) {
    return n < 64 ? ((__mmask64)1 << n) - 1 : ~(__mmask64)0;
}

// 64 samples at a time; what lies behind the n-th is neither read nor written.
// Unpacking works on 128-bit lanes, and so does the packing at the end, after
// which only the lanes are out of order.
static void rows_u8(int16_t *to, const uint8_t *from, size_t stride, const int16_t *weights,
                    int taps, int precision, size_t n) {
    const int shift = precision - RESIZE_FRACTION;
    const __m512i zero = _mm512_setzero_si512();
    const __m512i half = _mm512_set1_epi32(1 << (shift - 1));
    const __m512i lanes0 = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i lanes1 = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    for (size_t i = 0; i < n; i += 64) {
        const __mmask64 mask = first_bits(n - i);
        __m512i sum0 = half, sum1 = half, sum2 = half, sum3 = half;
        for (int t = 0; t < taps; t += 2) {
            const uint8_t *row = from + (size_t)t * stride + i;
            __m512i w = weight_pair(weights, t, taps);
            __m512i a = _mm512_maskz_loadu_epi8(mask, row);
            __m512i b = t + 1 < taps ? _mm512_maskz_loadu_epi8(mask, row + stride) : zero;
            __m512i low = _mm512_unpacklo_epi8(a, b), high = _mm512_unpackhi_epi8(a, b);
            sum0 = add_pair(sum0, _mm512_unpacklo_epi8(low, zero), w);
            sum1 = add_pair(sum1, _mm512_unpackhi_epi8(low, zero), w);
            sum2 = add_pair(sum2, _mm512_unpacklo_epi8(high, zero), w);
            sum3 = add_pair(sum3, _mm512_unpackhi_epi8(high, zero), w);
        }
        __m512i low = _mm512_packs_epi32(_mm512_srai_epi32(sum0, (unsigned)shift),
                                         _mm512_srai_epi32(sum1, (unsigned)shift));
        __m512i high = _mm512_packs_epi32(_mm512_srai_epi32(sum2, (unsigned)shift),
                                          _mm512_srai_epi32(sum3, (unsigned)shift));
        _mm512_mask_storeu_epi16(to + i, (__mmask32)mask,
                                 _mm512_permutex2var_epi64(low, lanes0, high));
        _mm512_mask_storeu_epi16(to + i + 32, (__mmask32)(mask >> 32),
                                 _mm512_permutex2var_epi64(low, lanes1, high));
    }
}

// Few taps of few channels do not fill a wider register than AVX2's.
static void pixels_u8(uint8_t *to, const int16_t *from, const struct resize_axis *axis,
                      int channels) {
    resize_avx2.pixels_u8(to, from, axis, channels);
}

// Products and sums are rounded one by one, as in the reference: no FMA.
static void rows_f32(float *to, const float *from, size_t stride, const float *weights, int taps,
                     size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 mask = (__mmask16)first_bits(n - i);
        __m512 sum =
            _mm512_mul_ps(_mm512_set1_ps(weights[0]), _mm512_maskz_loadu_ps(mask, from + i));
        for (int t = 1; t < taps; t++) {
            __m512 row = _mm512_maskz_loadu_ps(mask, from + (size_t)t * stride + i);
            sum = _mm512_add_ps(sum, _mm512_mul_ps(_mm512_set1_ps(weights[t]), row));
        }
        _mm512_mask_storeu_ps(to + i, mask, sum);
    }
}

static void pixels_f32(float *to, const float *from, const struct resize_axis *axis, int channels) {
    resize_ref.pixels_f32(to, from, axis, channels);
}

const struct resize_kernels resize_avx512 = {rows_u8, pixels_u8, rows_f32, pixels_f32};
#endif
