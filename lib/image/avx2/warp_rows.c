// Four RGB pixels at a time: one load of 8 bytes takes a pixel and its right
// neighbour.
#include "image/warp_rows.h"

#include <immintrin.h>
#include <string.h>

static inline __m128i load_8(const uint8_t *p) {
    return _mm_loadl_epi64((const __m128i *)(const void *)p);
}

// The 8 bytes at p + offset[i] in each lane, of which 6 are used. Four plain loads
// are faster than one gather.
static inline __m256i load_pairs(const uint8_t *p, const int64_t offset[4]) {
    return _mm256_set_m128i(_mm_unpacklo_epi64(load_8(p + offset[2]), load_8(p + offset[3])),
                            _mm_unpacklo_epi64(load_8(p + offset[0]), load_8(p + offset[1])));
}

static inline void store_12(uint8_t *to, __m128i bytes) {
    uint32_t last = (uint32_t)_mm_extract_epi32(bytes, 2);
    _mm_storel_epi64((__m128i *)(void *)to, bytes);
    memcpy(to + 8, &last, 4);
}

int warp_row_rgb_avx2(uint8_t *to, const struct warp_source *from, int n, struct warp_step at) {
    const uint8_t *data = from->data;
    __m256i x = _mm256_setr_epi64x(at.x, at.x + at.dx, at.x + 2 * at.dx, at.x + 3 * at.dx);
    __m256i y = _mm256_setr_epi64x(at.y, at.y + at.dy, at.y + 2 * at.dy, at.y + 3 * at.dy);
    const __m256i step_x = _mm256_set1_epi64x(4 * at.dx), step_y = _mm256_set1_epi64x(4 * at.dy);
    const __m256i stride = _mm256_set1_epi64x(from->stride);
    const __m256i sign = _mm256_set1_epi8((char)0x80);
    // 16-bit copies of the weight at the bottom of each 64-bit lane
    const __m256i spread_x = _mm256_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 8, 9, 8, 9, 8, 9, 8, 9, 0, 1,
                                              0, 1, 0, 1, 0, 1, 8, 9, 8, 9, 8, 9, 8, 9);
    // r g b of a pixel, then r g b of its neighbour, each as 4 bytes
    const __m256i split = _mm256_setr_epi8(0, 1, 2, 2, 3, 4, 5, 5, 8, 9, 10, 10, 11, 12, 13, 13, 0,
                                           1, 2, 2, 3, 4, 5, 5, 8, 9, 10, 10, 11, 12, 13, 13);
    const __m128i squeeze = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    int i = 0;
    for (; i + 4 <= n; i += 4, to += 12) {
        __m256i column = _mm256_srli_epi64(x, WARP_POINT), row = _mm256_srli_epi64(y, WARP_POINT);
        __m256i triple = _mm256_add_epi64(column, _mm256_add_epi64(column, column));
        int64_t offset[4];
        _mm256_storeu_si256((__m256i *)(void *)offset,
                            _mm256_add_epi64(_mm256_mul_epu32(row, stride), triple));
        __m256i top = load_pairs(data, offset);
        __m256i bottom = load_pairs(data + from->stride, offset);
        top = _mm256_shuffle_epi8(_mm256_xor_si256(top, sign), split);
        bottom = _mm256_shuffle_epi8(_mm256_xor_si256(bottom, sign), split);

        // weights: bytes (128 - fy, fy) over each lane; words fx over each lane
        __m256i fy = _mm256_and_si256(_mm256_srli_epi64(y, WARP_POINT - WARP_Y_BITS),
                                      _mm256_set1_epi64x(127));
        __m256i weights = _mm256_add_epi64(_mm256_sub_epi64(_mm256_set1_epi64x(128), fy),
                                           _mm256_slli_epi64(fy, 8));
        weights = _mm256_shuffle_epi8(weights, spread_x);
        __m256i fx = _mm256_and_si256(_mm256_srli_epi64(x, WARP_POINT - WARP_X_BITS),
                                      _mm256_set1_epi64x(0x7fff));
        fx = _mm256_shuffle_epi8(fx, spread_x);

        // words: 4 of the pixel, 4 of its neighbour; a 128-bit half per pixel
        __m256i even = _mm256_maddubs_epi16(_mm256_unpacklo_epi64(weights, weights),
                                            _mm256_unpacklo_epi8(top, bottom));
        __m256i odd = _mm256_maddubs_epi16(_mm256_unpackhi_epi64(weights, weights),
                                           _mm256_unpackhi_epi8(top, bottom));
        __m256i left = _mm256_unpacklo_epi64(even, odd), right = _mm256_unpackhi_epi64(even, odd);
        __m256i value =
            _mm256_add_epi16(left, _mm256_mulhrs_epi16(_mm256_sub_epi16(right, left), fx));
        value = _mm256_srai_epi16(_mm256_add_epi16(value, _mm256_set1_epi16(64)), 7);
        __m128i bytes =
            _mm_packs_epi16(_mm256_castsi256_si128(value), _mm256_extracti128_si256(value, 1));
        bytes = _mm_xor_si128(bytes, _mm256_castsi256_si128(sign));
        store_12(to, _mm_shuffle_epi8(bytes, squeeze));
        x = _mm256_add_epi64(x, step_x), y = _mm256_add_epi64(y, step_y);
    }
    return i;
}
