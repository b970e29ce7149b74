#include "image/codec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/mem.h"
#include "image/formats.h"

#define DEFAULT_MAX_PIXELS 100000000
#define DEFAULT_QUALITY 92

enum codec codec_of(const void *data, size_t size) {
    const uint8_t *b = data;
    if (size >= 3 && b[0] == 0xff && b[1] == 0xd8 && b[2] == 0xff)
        return CODEC_JPEG;
    if (size >= 8 && memcmp(b, "\x89PNG\r\n\x1a\n", 8) == 0)
        return CODEC_PNG;
    if (size >= 3 && b[0] == 'P' && b[1] >= '1' && b[1] <= '6' && (isspace(b[2]) || b[2] == '#'))
        return CODEC_PNM;
    return CODEC_NONE;
}

// The first extension of a codec is the one it is written with.
static const struct {
    enum codec codec;
    const char *extension;
} extensions[] = {
    {CODEC_JPEG, "jpg"}, {CODEC_JPEG, "jpeg"}, {CODEC_JPEG, "jpe"}, {CODEC_PNG, "png"},
    {CODEC_PNM, "ppm"},  {CODEC_PNM, "pgm"},   {CODEC_PNM, "pbm"},  {CODEC_PNM, "pnm"},
};
static const size_t extension_count = sizeof extensions / sizeof extensions[0];

const char *codec_extension(enum codec codec) {
    for (size_t i = 0; i < extension_count; i++)
        if (extensions[i].codec == codec)
            return extensions[i].extension;
    return "";
}

enum codec codec_of_extension(const char *extension) {
    for (size_t i = 0; i < extension_count; i++)
        if (!strcasecmp(extensions[i].extension, extension))
            return extensions[i].codec;
    return CODEC_NONE;
}

uint64_t decode_most(const struct decode_options *options) {
    return options->max_pixels ? options->max_pixels : DEFAULT_MAX_PIXELS;
}

int format_check_size(uint64_t width, uint64_t height, const struct decode_options *options,
                      struct error *err) {
    uint64_t limit = decode_most(options), pixels;
    if (width == 0 || height == 0)
        return error_set(err, STATUS_DATA, "%llux%llu pixels: the picture is empty",
                         (unsigned long long)width, (unsigned long long)height);
    if (__builtin_mul_overflow(width, height, &pixels) || pixels > limit)
        return error_set(err, STATUS_DATA, "%llux%llu pixels are more than the limit of %llu",
                         (unsigned long long)width, (unsigned long long)height,
                         (unsigned long long)limit);
    if (width > IMAGE_MAX_SIDE || height > IMAGE_MAX_SIDE)
        return error_set(err, STATUS_DATA, "%llux%llu pixels: a side is longer than %d",
                         (unsigned long long)width, (unsigned long long)height, IMAGE_MAX_SIDE);
    return STATUS_OK;
}

int format_shape(struct image *image, int width, int height, int channels, uint64_t beside,
                 const struct decode_options *options, struct error *err) {
    if (options->claim)
        options->claim(options->self, (uint64_t)width * (uint64_t)height + beside);
    return image_shape(image, width, height, channels, PIXEL_U8, err);
}

int image_decode(struct image *image, const void *data, size_t size,
                 const struct decode_options *options, struct error *err) {
    switch (codec_of(data, size)) {
    case CODEC_JPEG:
        return jpeg_decode(image, data, size, options, err);
    case CODEC_PNG:
        return png_decode(image, data, size, options, err);
    case CODEC_PNM:
        return pnm_decode_last(image, data, size, options, err);
    case CODEC_NONE:
        break;
    }
    if (size == 0)
        return error_set(err, STATUS_DATA, "empty, no picture");
    return error_set(err, STATUS_DATA, "neither JPEG, PNG nor PNM");
}

bool encoded_reserve(struct encoded *out, size_t more) {
    size_t wanted;
    if (__builtin_add_overflow(out->size, more, &wanted))
        return false;
    if (wanted <= out->capacity)
        return true;
    size_t capacity = out->capacity < SIZE_MAX / 2 ? out->capacity * 2 : wanted;
    if (capacity < wanted)
        capacity = wanted;
    uint8_t *data = mem_resize(out->data, capacity, 1);
    if (!data)
        return false;
    out->data = data;
    out->capacity = capacity;
    return true;
}

int image_encode(void **data, size_t *size, const struct image *image, enum codec codec,
                 int quality, struct error *err) {
    struct encoded out = {0};
    int status = STATUS_BUG;
    if (image->type != PIXEL_U8 || (image->channels != 1 && image->channels != 3))
        return error_set(err, STATUS_DATA,
                         "only 8-bit gray or RGB can be written as a picture, "
                         "not %d channels of %s",
                         image->channels, image->type == PIXEL_U8 ? "8 bits" : "floats");
    switch (codec) {
    case CODEC_JPEG:
        status = jpeg_encode(&out, image, quality ? quality : DEFAULT_QUALITY, err);
        break;
    case CODEC_PNG:
        status = png_encode(&out, image, err);
        break;
    case CODEC_PNM:
        status = pnm_encode(&out, image, err);
        break;
    case CODEC_NONE:
        status = error_set(err, STATUS_BUG, "no codec to write a picture with");
    }
    if (status) {
        free(out.data);
        return status;
    }
    *data = out.data;
    *size = out.size;
    return STATUS_OK;
}
