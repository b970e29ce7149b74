#include "image/image.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"

int image_true_width(const struct image *image) {
    return image->true_size.by ? image->true_size.width : image->width;
}

int image_true_height(const struct image *image) {
    return image->true_size.by ? image->true_size.height : image->height;
}

size_t image_values(const struct image *image) {
    return (size_t)image->width * (size_t)image->height * (size_t)image->channels;
}

size_t image_bytes(const struct image *image) {
    return image_values(image) * (image->type == PIXEL_F32 ? sizeof(float) : 1);
}

int image_shape(struct image *image, int width, int height, int channels, enum pixel type,
                struct error *err) {
    if (width < 1 || width > IMAGE_MAX_SIDE || height < 1 || height > IMAGE_MAX_SIDE ||
        channels < 1 || channels > IMAGE_MAX_CHANNELS)
        return error_set(err, STATUS_DATA,
                         "a picture of %dx%dx%d (channels x height x width) is "
                         "out of bounds",
                         channels, height, width);
    struct image shaped = {.width = width, .height = height, .channels = channels, .type = type};
    size_t bytes = image_bytes(&shaped);
    if (bytes > image->capacity) {
        void *data = mem_array(bytes, 1);
        if (!data)
            return error_nomem(err);
        free(image->data);
        image->data = data;
        image->capacity = bytes;
    }
    image->width = width, image->height = height, image->channels = channels, image->type = type;
    image->true_size = (struct image_true){0};
    return STATUS_OK;
}

int image_copy(struct image *to, const struct image *from, struct error *err) {
    int status = image_shape(to, from->width, from->height, from->channels, from->type, err);
    if (status)
        return status;
    memcpy(to->data, from->data, image_bytes(from));
    to->true_size = from->true_size;
    return STATUS_OK;
}

void image_swap(struct image *a, struct image *b) {
    struct image t = *a;
    *a = *b, *b = t;
}

void image_free(struct image *image) {
    free(image->data);
    *image = (struct image){0};
}

// 16-bit fixed point, the factors adding up to one.
static uint8_t luma(const uint8_t *rgb) {
    return (uint8_t)((19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 32768U) >> 16);
}

void image_gray(struct image *image) {
    if (image->channels != 3)
        return;
    image->channels = 1;
    size_t pixels = image_values(image);
    if (image->type == PIXEL_U8)
        for (size_t i = 0; i < pixels; i++)
            image->u8[i] = luma(image->u8 + 3 * i);
    else
        for (size_t i = 0; i < pixels; i++) {
            const float *rgb = image->f32 + 3 * i;
            image->f32[i] = 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
        }
}
