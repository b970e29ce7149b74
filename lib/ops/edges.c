// Operations that look at a pixel's neighbours.
#include "core/error.h"
#include "image/blur.h"
#include "ops/op.h"

static int blur_apply(const struct op *op, struct canvas *canvas, struct random *random,
                      struct error *err) {
    double sigma = op_draw(&op->values[0], random);
    int status = canvas_settle(canvas, err);
    if (status)
        return status;
    float *room = scratch_floats(canvas->scratch, image_blur_room(canvas->image, sigma));
    if (!room)
        return error_nomem(err);
    image_blur(canvas->image, sigma, room);
    return STATUS_OK;
}

const struct op_code op_blur = {.apply = blur_apply};

static int sharpness_apply(const struct op *op, struct canvas *canvas, struct random *random,
                           struct error *err) {
    double factor = op_draw(&op->values[0], random);
    struct image *image = canvas->image, *spare = &canvas->scratch->spare;
    int status = canvas_settle(canvas, err);
    if (!status)
        status = image_shape(spare, image->width, image->height, image->channels, image->type, err);
    if (status)
        return status;
    image_sharpen(spare, image, factor);
    image_swap(spare, image);
    return STATUS_OK;
}

const struct op_code op_sharpness = {.apply = sharpness_apply};
