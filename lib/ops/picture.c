#include "ops/picture.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/text.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_value(uint8_t bytes[4], float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(bits >> 8 * i);
}

static float float_of_bytes(const uint8_t bytes[4]) {
    uint32_t bits = 0;
    float value;
    for (int i = 0; i < 4; i++)
        bits |= (uint32_t)bytes[i] << 8 * i;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Three bytes are four digits; what is missing at the end is written '='.
static void encode_base64(char *to, const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i += 3, to += 4) {
        uint32_t group = 0;
        size_t n = size - i < 3 ? size - i : 3;
        for (size_t k = 0; k < n; k++)
            group |= (uint32_t)bytes[i + k] << (16 - 8 * k);
        for (size_t k = 0; k < 4; k++)
            to[k] = k <= n ? digits[group >> (18 - 6 * k) & 63] : '=';
    }
    *to = 0;
}

static bool decode_base64(uint8_t *bytes, size_t size, const char *text) {
    for (size_t i = 0; i < size; i += 3, text += 4) {
        uint32_t group = 0;
        size_t n = size - i < 3 ? size - i : 3;
        for (size_t k = 0; k < 4; k++) {
            const char *digit = k <= n ? memchr(digits, text[k], 64) : NULL;
            if (k <= n ? !digit : text[k] != '=')
                return false;
            group |= (uint32_t)(digit ? digit - digits : 0) << (18 - 6 * k);
        }
        for (size_t k = 0; k < n; k++)
            bytes[i + k] = (uint8_t)(group >> (16 - 8 * k));
    }
    return true;
}

char *picture_write(const struct image *image) {
    enum { HEAD = 48 };
    size_t values = image_values(image), size = 4 * values;
    uint8_t *bytes = mem_array(size, 1);
    char *text = mem_array(HEAD + (size + 2) / 3 * 4 + 1, 1);
    for (size_t i = 0; bytes && text && i < values; i++)
        put_value(bytes + 4 * i, image->type == PIXEL_F32 ? image->f32[i] : (float)image->u8[i]);
    if (bytes && text) {
        int head = snprintf(text, HEAD, "%dx%dx%d:", image->width, image->height, image->channels);
        encode_base64(text + head, bytes, size);
    } else {
        free(text);
        text = NULL;
    }
    free(bytes);
    return text;
}

// "32x32x3:" in front; *used is its length.
static bool read_shape(int shape[3], const char *text, size_t length, size_t *used) {
    *used = 0;
    for (int i = 0; i < 3; i++) {
        const char *end = memchr(text + *used, i < 2 ? 'x' : ':', length - *used);
        int64_t n;
        if (!end || !text_integer(text + *used, (size_t)(end - text) - *used, &n) || n < 1 ||
            n > (i < 2 ? IMAGE_MAX_SIDE : IMAGE_MAX_CHANNELS))
            return false;
        shape[i] = (int)n;
        *used = (size_t)(end - text) + 1;
    }
    return true;
}

bool picture_read(struct image *image, const char *text, size_t length) {
    int shape[3];
    size_t used, size;
    if (!read_shape(shape, text, length, &used) ||
        __builtin_mul_overflow((size_t)shape[0] * (size_t)shape[1], 4 * (size_t)shape[2], &size) ||
        (size + 2) / 3 != (length - used) / 4 || (length - used) % 4)
        return false;
    uint8_t *bytes = mem_array(size, 1);
    bool good = bytes && decode_base64(bytes, size, text + used) &&
                !image_shape(image, shape[0], shape[1], shape[2], PIXEL_F32, NULL);
    for (size_t i = 0; good && i < size / 4; i++) {
        image->f32[i] = float_of_bytes(bytes + 4 * i);
        good = isfinite(image->f32[i]);
    }
    free(bytes);
    return good;
}
