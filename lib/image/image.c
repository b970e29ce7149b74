#include "image/image.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "image/luma.h"

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

static void gray_bytes(uint8_t *pixel, size_t pixels) {
    for (size_t i = 0; i < pixels; i++)
        pixel[i] = luma_u8(pixel + 3 * i);
}

static void gray_floats(float *pixel, size_t pixels) {
    for (size_t i = 0; i < pixels; i++)
        pixel[i] = luma_f32(pixel + 3 * i);
}

void image_gray(struct image *image) {
    if (image->channels != 3)
        return;
    image->channels = 1;
    if (image->type == PIXEL_U8)
        gray_bytes(image->u8, image_values(image));
    else
        gray_floats(image->f32, image_values(image));
}

// RGB from gray in place: the last pixel first, so that none is written over before it is read.
static int spread_gray(struct image *image, struct error *err) {
    size_t pixels = image_values(image), bytes = 3 * image_bytes(image);
    if (bytes > image->capacity) {
        void *data = mem_resize(image->data, bytes, 1);
        if (!data)
            return error_nomem(err);
        image->data = data, image->capacity = bytes;
    }
    image->channels = 3;
    uint8_t *u8 = image->u8;
    float *f32 = image->f32;
    if (image->type == PIXEL_U8)
        for (size_t i = pixels; i-- > 0;)
            u8[3 * i] = u8[3 * i + 1] = u8[3 * i + 2] = u8[i];
    else
        for (size_t i = pixels; i-- > 0;)
            f32[3 * i] = f32[3 * i + 1] = f32[3 * i + 2] = f32[i];
    return STATUS_OK;
}

int image_channels(struct image *image, int channels, struct error *err) {
    if (!channels || image->channels == channels)
        return STATUS_OK;
    if (image->channels != 1 && image->channels != 3)
        return error_set(err, STATUS_DATA, "a picture of %d channels is neither gray nor RGB",
                         image->channels);
    if (channels == 3)
        return spread_gray(image, err);
    image_gray(image);
    return STATUS_OK;
}
