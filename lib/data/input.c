#include "data/input.h"

#include "image/floats.h"

int input_fill(float *to, int channels, int height, int width, const struct image *image,
               struct error *err) {
    if (image->channels != channels || image->height != height || image->width != width)
        return error_set(err, STATUS_DATA,
                         "the picture is %dx%dx%d (channels x height x width) where the model "
                         "reads %dx%dx%d",
                         image->channels, image->height, image->width, channels, height, width);
    image_planes(to, image);
    return STATUS_OK;
}
