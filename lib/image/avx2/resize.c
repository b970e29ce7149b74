// Rows are resized before pixels, so that the loop that streams does most of the multiplications.
// All pixels have `most` taps: a number that differs from pixel to pixel is a mispredicted branch.
// Four results are rounded and packed together.
#if defined(__AVX2__)
#include <immintrin.h>
#include <string.h>

#include "image/resize_kernels.h"

// Two samples of neighbouring rows side by side, times two weights side by side.
static __m256i add_pair(__m256i sum, __m256i pair, __m256i weights) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pair, weights));
}

static __m256i weight_pair(const int16_t *weights, int t, int taps) {
    uint32_t pair = (uint16_t)weights[t];
    if (t + 1 < taps)
        pair |= (uint32_t)(uint16_t)weights[t + 1] << 16;
    return _mm256_set1_epi32((int)pair);
}

// 32 samples at a time. Unpacking works on 128-bit lanes, and so does the
// packing at the end, which undoes it.
static void rows_u8(int16_t *to, const uint8_t *from, size_t stride, const int16_t *weights,
                    int taps, int precision, size_t n) {
    const int shift = precision - RESIZE_FRACTION;
    const __m256i zero = _mm256_setzero_si256();
    const __m256i half = _mm256_set1_epi32(1 << (shift - 1));
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i sum[4] = {half, half, half, half};
        for (int t = 0; t < taps; t += 2) {
            const uint8_t *row = from + (size_t)t * stride + i;
            __m256i w = weight_pair(weights, t, taps);
            __m256i a = _mm256_loadu_si256((const __m256i *)row);
            __m256i b = t + 1 < taps ? _mm256_loadu_si256((const __m256i *)(row + stride)) : zero;
            __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
            sum[0] = add_pair(sum[0], _mm256_unpacklo_epi8(low, zero), w);
            sum[1] = add_pair(sum[1], _mm256_unpackhi_epi8(low, zero), w);
            sum[2] = add_pair(sum[2], _mm256_unpacklo_epi8(high, zero), w);
            sum[3] = add_pair(sum[3], _mm256_unpackhi_epi8(high, zero), w);
        }
        __m256i low =
            _mm256_packs_epi32(_mm256_srai_epi32(sum[0], shift), _mm256_srai_epi32(sum[1], shift));
        __m256i high =
            _mm256_packs_epi32(_mm256_srai_epi32(sum[2], shift), _mm256_srai_epi32(sum[3], shift));
        _mm256_storeu_si256((__m256i *)(to + i), _mm256_permute2x128_si256(low, high, 0x20));
        _mm256_storeu_si256((__m256i *)(to + i + 16), _mm256_permute2x128_si256(low, high, 0x31));
    }
    if (i < n)
        resize_ref.rows_u8(to + i, from + i, stride, weights, taps, precision, n - i);
}

// Sums of one axis, rounded.
static inline __m128i rounded(__m128i sum, const struct resize_axis *axis) {
    const int shift = axis->precision + RESIZE_FRACTION;
    return _mm_sra_epi32(_mm_add_epi32(sum, _mm_set1_epi32(1 << (shift - 1))),
                         _mm_cvtsi32_si128(shift));
}

// Weighted sum of 8 samples at a time, in four parts.
static inline __m128i gray_sum(const int16_t *from, const struct resize_axis *axis, int i) {
    const int16_t *weights = axis->fixed + (size_t)i * (size_t)axis->stride;
    from += axis->first[i];
    __m128i sum = _mm_setzero_si128();
    for (int t = 0; t < axis->most; t += 8)
        sum = _mm_add_epi32(sum, _mm_madd_epi16(_mm_loadu_si128((const __m128i *)(from + t)),
                                                _mm_loadu_si128((const __m128i *)(weights + t))));
    return sum;
}

static inline __m128i four_gray(const int16_t *from, const struct resize_axis *axis, int i) {
    __m128i ab = _mm_hadd_epi32(gray_sum(from, axis, i), gray_sum(from, axis, i + 1));
    __m128i cd = _mm_hadd_epi32(gray_sum(from, axis, i + 2), gray_sum(from, axis, i + 3));
    __m128i sum = rounded(_mm_hadd_epi32(ab, cd), axis);
    sum = _mm_packs_epi32(sum, sum);
    return _mm_packus_epi16(sum, sum);
}

// Four source pixels at a time, two in each half of a register: R0 R1 G0 G1 B0 B1
// by the weights W0 W1 W0 W1 W0 W1.
static inline __m128i rgb_sum(const int16_t *from, const struct resize_axis *axis, int i) {
    const __m256i pairs = _mm256_setr_epi8(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1, //
                                           0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1);
    const __m256i spread = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    const int16_t *weights = axis->fixed + (size_t)i * (size_t)axis->stride;
    from += 3 * axis->first[i];
    __m256i sum = _mm256_setzero_si256();
    for (int t = 0; t < axis->most; t += 4, from += 12) {
        __m128i low = _mm_loadu_si128((const __m128i *)from);
        __m128i high = _mm_loadu_si128((const __m128i *)(from + 6));
        __m256i four = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
        __m128i w = _mm_loadl_epi64((const __m128i *)(weights + t));
        sum = add_pair(sum, _mm256_shuffle_epi8(four, pairs),
                       _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(w), spread));
    }
    return rounded(_mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1)),
                   axis);
}

static inline __m128i four_rgb(const int16_t *from, const struct resize_axis *axis, int i) {
    const __m128i close = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    __m128i ab = _mm_packs_epi32(rgb_sum(from, axis, i), rgb_sum(from, axis, i + 1));
    __m128i cd = _mm_packs_epi32(rgb_sum(from, axis, i + 2), rgb_sum(from, axis, i + 3));
    return _mm_shuffle_epi8(_mm_packus_epi16(ab, cd), close);
}

// Four results at a time; the few that remain are the reference's.
static void pixels_u8(uint8_t *to, const int16_t *from, const struct resize_axis *axis,
                      int channels) {
    int i = 0;
    for (; channels == 1 && i + 4 <= axis->count; i += 4) {
        __m128i bytes = four_gray(from, axis, i);
        memcpy(to + i, &bytes, 4);
    }
    for (; channels == 3 && i + 4 <= axis->count; i += 4) {
        __m128i bytes = four_rgb(from, axis, i);
        memcpy(to + 3 * i, &bytes, 12);
    }
    struct resize_axis rest = *axis;
    rest.count -= i, rest.first += i, rest.taps += i;
    rest.fixed += (size_t)i * (size_t)axis->stride;
    resize_ref.pixels_u8(to + i * channels, from, &rest, channels);
}

// Products and sums are rounded one by one, as in the reference: no FMA.
static void rows_f32(float *to, const float *from, size_t stride, const float *weights, int taps,
                     size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 sum = _mm256_mul_ps(_mm256_set1_ps(weights[0]), _mm256_loadu_ps(from + i));
        for (int t = 1; t < taps; t++) {
            __m256 row = _mm256_loadu_ps(from + (size_t)t * stride + i);
            sum = _mm256_add_ps(sum, _mm256_mul_ps(_mm256_set1_ps(weights[t]), row));
        }
        _mm256_storeu_ps(to + i, sum);
    }
    if (i < n)
        resize_ref.rows_f32(to + i, from + i, stride, weights, taps, n - i);
}

static void pixels_f32(float *to, const float *from, const struct resize_axis *axis, int channels) {
    resize_ref.pixels_f32(to, from, axis, channels);
}

const struct resize_kernels resize_avx2 = {rows_u8, pixels_u8, rows_f32, pixels_f32};
#endif
