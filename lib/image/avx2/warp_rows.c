// Eight RGB pixels at a time. One load of 8 bytes takes a pixel and its right
// neighbour; with the same of the row below they are the 16 bytes of a lane, so
// that one multiplication blends down and one blends across.
#include "image/warp_rows.h"

#include <immintrin.h>
#include <string.h>

// The 16 bytes of the pixel at p: of its row and of the one below, 6 used of each 8.
static inline __m128i load_pixel(const uint8_t *p, ptrdiff_t stride) {
    __m128i top = _mm_loadl_epi64((const __m128i *)(const void *)p);
    __m128i bottom = _mm_loadl_epi64((const __m128i *)(const void *)(p + stride));
    return _mm_unpacklo_epi64(top, bottom);
}

// Pixels a and b, one in each half, as 32-bit r g b and one more; `down` and
// `across` hold the weights.
static inline __m256i blend(__m128i a, __m128i b, __m256i down, __m256i across) {
    const __m256i columns = _mm256_setr_epi8(0, 8, 3, 11, 1, 9, 4, 12, 2, 10, 5, 13, 2, 10, 5, 13,
                                             0, 8, 3, 11, 1, 9, 4, 12, 2, 10, 5, 13, 2, 10, 5, 13);
    __m256i taps = _mm256_xor_si256(_mm256_set_m128i(b, a), _mm256_set1_epi8((char)0x80));
    taps = _mm256_maddubs_epi16(down, _mm256_shuffle_epi8(taps, columns));
    taps = _mm256_add_epi32(_mm256_madd_epi16(taps, across), _mm256_set1_epi32(1 << 20));
    return _mm256_srai_epi32(taps, 21);
}

// The coordinates of a group: 16 bits before and 16 behind the point.
static inline __m256i lanes(int64_t start, __m256i steps) {
    return _mm256_add_epi32(_mm256_set1_epi32((int)warp_cut(start)), steps);
}

static inline __m256i steps_of(int64_t step) {
    return _mm256_setr_epi32(0, (int)warp_cut(step), (int)warp_cut(2 * step),
                             (int)warp_cut(3 * step), (int)warp_cut(4 * step),
                             (int)warp_cut(5 * step), (int)warp_cut(6 * step),
                             (int)warp_cut(7 * step));
}

// 16-bit weights 2^14 - fx and fx beside each other.
static inline __m256i weights_across(__m256i x) {
    __m256i fx =
        _mm256_and_si256(_mm256_srli_epi32(x, 16 - WARP_X_BITS), _mm256_set1_epi32(0x3fff));
    return _mm256_add_epi32(_mm256_sub_epi32(_mm256_slli_epi32(fx, 16), fx),
                            _mm256_set1_epi32(1 << 14));
}

// 8-bit weights 128 - fy and fy beside each other, twice.
static inline __m256i weights_down(__m256i y) {
    __m256i fy = _mm256_and_si256(_mm256_srli_epi32(y, 16 - WARP_Y_BITS), _mm256_set1_epi32(0x7f));
    __m256i pair =
        _mm256_add_epi32(_mm256_sub_epi32(_mm256_slli_epi32(fy, 8), fy), _mm256_set1_epi32(128));
    return _mm256_or_si256(pair, _mm256_slli_epi32(pair, 16));
}

// 8 pixels of 4 bytes become 24 bytes.
static inline void store_24(uint8_t *to, __m256i pixels) {
    const __m256i squeeze =
        _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4, 5, 6,
                         8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    pixels = _mm256_shuffle_epi8(pixels, squeeze);
    __m128i second = _mm256_extracti128_si256(pixels, 1);
    uint32_t last = (uint32_t)_mm_extract_epi32(second, 2);
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(pixels));
    _mm_storel_epi64((__m128i *)(void *)(to + 12), second);
    memcpy(to + 20, &last, 4);
}

int warp_row_rgb_avx2(uint8_t *to, const struct warp_source *from, int n, struct warp_step at) {
    const uint8_t *data = from->data;
    const ptrdiff_t stride = from->stride;
    const __m256i steps_x = steps_of(at.dx), steps_y = steps_of(at.dy);
    // offset = 3 column + stride row, of 16-bit columns and rows beside each other
    const __m256i factors = _mm256_set1_epi32((int)(stride << 16 | 3));
    int i = 0;
    for (; i + WARP_GROUP <= n; i += WARP_GROUP, to += 3 * WARP_GROUP) {
        __m256i x = lanes(at.x, steps_x), y = lanes(at.y, steps_y);
        int32_t o[WARP_GROUP];
        _mm256_storeu_si256(
            (__m256i *)(void *)o,
            _mm256_madd_epi16(_mm256_blend_epi16(_mm256_srli_epi32(x, 16), y, 0xaa), factors));
        __m256i across = weights_across(x), down = weights_down(y);
#define BLEND(k)                                                                                   \
    blend(load_pixel(data + o[k], stride), load_pixel(data + o[k + 4], stride),                    \
          _mm256_shuffle_epi32(down, 0x55 * k), _mm256_shuffle_epi32(across, 0x55 * k))
        __m256i first = _mm256_packs_epi32(BLEND(0), BLEND(1));
        __m256i second = _mm256_packs_epi32(BLEND(2), BLEND(3));
#undef BLEND
        __m256i bytes = _mm256_packs_epi16(first, second);
        store_24(to, _mm256_xor_si256(bytes, _mm256_set1_epi8((char)0x80)));
        at.x += WARP_GROUP * at.dx, at.y += WARP_GROUP * at.dy;
    }
    return i;
}
