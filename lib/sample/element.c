#include "sample/element.h"

#include <math.h>
#include <string.h>

static uint64_t load_bits(const uint8_t *bytes, struct element element) {
    uint64_t bits = 0;
    for (int i = 0; i < element.size; i++)
        bits = bits << 8 | bytes[element.big ? i : element.size - 1 - i];
    return bits;
}

static int64_t sign_extend(uint64_t bits, int size) {
    int unused = 64 - 8 * size;
    return (int64_t)(bits << unused) >> unused;
}

// IEEE 754 binary16.
static float half_value(uint16_t bits) {
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    float value = exponent == 0    ? ldexpf((float)mantissa, -24)
                  : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                   : ldexpf((float)(mantissa + 1024), exponent - 25);
    return bits >> 15 ? -value : value;
}

static float float_value(uint64_t bits, int size) {
    float single;
    double wide;
    uint32_t low = (uint32_t)bits;
    switch (size) {
    case 2:
        return half_value((uint16_t)bits);
    case 4:
        memcpy(&single, &low, sizeof single);
        return single;
    default:
        memcpy(&wide, &bits, sizeof wide);
        return (float)wide;
    }
}

static const bool host_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

void element_singles(void *to, const float *from, size_t n, bool big) {
    uint8_t *bytes = to;
    memcpy(bytes, from, n * sizeof *from);
    for (size_t i = 0; big != host_big && i < n; i++, bytes += 4) {
        uint32_t bits;
        memcpy(&bits, bytes, sizeof bits);
        bits = __builtin_bswap32(bits);
        memcpy(bytes, &bits, sizeof bits);
    }
}

void element_floats(float *to, const void *from, size_t n, struct element element) {
    if (element.kind == 'f' && element.size == 4 && element.big == host_big) {
        memcpy(to, from, n * sizeof *to);
        return;
    }
    const uint8_t *bytes = from;
    for (size_t i = 0; i < n; i++, bytes += element.size) {
        uint64_t bits = load_bits(bytes, element);
        to[i] = element.kind == 'f'   ? float_value(bits, element.size)
                : element.kind == 'i' ? (float)sign_extend(bits, element.size)
                                      : (float)bits;
    }
}

bool element_integer(int64_t *to, const void *from, struct element element) {
    uint64_t bits = load_bits(from, element);
    if (element.kind == 'f' || (element.kind == 'u' && bits > INT64_MAX))
        return false;
    *to = element.kind == 'i' ? sign_extend(bits, element.size) : (int64_t)bits;
    return true;
}
