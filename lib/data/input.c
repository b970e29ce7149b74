#include "data/input.h"

#include "core/random.h"
#include "image/floats.h"
#include "sample/sample.h"

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

int input_label(int32_t label, int classes, struct error *err) {
    if (classes <= 0 || (label >= 0 && label < classes))
        return STATUS_OK;
    if (label == LABEL_NONE)
        return error_set(err, STATUS_DATA, "there is no label");
    return error_set(err, STATUS_DATA, "the label is %d where the model has %d classes, 0 to %d",
                     (int)label, classes, classes - 1);
}

uint64_t input_draw(uint64_t seed, uint64_t epoch, uint64_t key_hash) {
    return hash_mix(hash_mix(seed, epoch), key_hash);
}
