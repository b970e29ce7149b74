#include "data/input.h"

// One channel of `pixels` interleaved values into one plane.
static void plane_of_u8(float *to, const uint8_t *from, size_t pixels, int channels) {
    for (size_t i = 0; i < pixels; i++)
        to[i] = (float)from[i * (size_t)channels];
}

static void plane_of_f32(float *to, const float *from, size_t pixels, int channels) {
    for (size_t i = 0; i < pixels; i++)
        to[i] = from[i * (size_t)channels];
}

int input_fill(float *to, int channels, int height, int width, const struct image *image,
               struct error *err) {
    if (image->channels != channels || image->height != height || image->width != width)
        return error_set(err, STATUS_DATA,
                         "the picture is %dx%dx%d (channels x height x width) where the model "
                         "reads %dx%dx%d",
                         image->channels, image->height, image->width, channels, height, width);
    size_t pixels = (size_t)height * (size_t)width;
    for (int c = 0; c < channels; c++) {
        float *plane = to + (size_t)c * pixels;
        if (image->type == PIXEL_U8)
            plane_of_u8(plane, image->u8 + c, pixels, channels);
        else
            plane_of_f32(plane, image->f32 + c, pixels, channels);
    }
    return STATUS_OK;
}
