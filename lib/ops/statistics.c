// Operations that normalise: they turn values into floats, and several in a row
// become one multiplication and one addition.
#include "core/error.h"
#include "ops/op.h"

// Gives the waiting line as many channels as the list has, if it has only one.
static int match_channels(const struct op *op, struct canvas *canvas, struct error *err) {
    struct point_op *point = &canvas->point;
    int count = op->values[0].count, channels = canvas->image->channels;
    if (count != 1 && count != channels)
        return error_set(err, STATUS_DATA, "%s: %d values for a picture of %d channel%s",
                         op->info->name, count, channels, channels == 1 ? "" : "s");
    if (!point->linear) {
        point->linear = true;
        point->count = 1;
        point->gain[0] = 1, point->offset[0] = 0;
    }
    for (; point->count < count; point->count++) {
        point->gain[point->count] = point->gain[0];
        point->offset[point->count] = point->offset[0];
    }
    return STATUS_OK;
}

static double channel_value(const struct op *op, int channel) {
    const struct op_value *value = &op->values[0];
    return (double)value->list[value->count == 1 ? 0 : channel];
}

static int scale_apply(const struct op *op, struct canvas *canvas, struct random *random,
                       struct error *err) {
    (void)random;
    int status = match_channels(op, canvas, err);
    for (int c = 0; !status && c < canvas->point.count; c++) {
        canvas->point.gain[c] *= channel_value(op, c);
        canvas->point.offset[c] *= channel_value(op, c);
    }
    return status;
}

// Pixel by pixel. All that waits is done first.
static int subtract_picture(const struct op *op, struct canvas *canvas, struct error *err) {
    const struct image *mean = &op->values[MEAN_IMAGE].image;
    struct image *image = canvas->image;
    const float one = 1, zero = 0;
    int status = canvas_settle(canvas, err);
    if (status)
        return status;
    if (mean->width != image->width || mean->height != image->height ||
        mean->channels != image->channels)
        return error_set(err, STATUS_DATA,
                         "mean: a mean of %dx%dx%d for a picture of %dx%dx%d (channels x height x "
                         "width)",
                         mean->channels, mean->height, mean->width, image->channels, image->height,
                         image->width);
    if (image->type == PIXEL_U8) {
        status = image_linear(&canvas->scratch->spare, image, &one, &zero, 1, err);
        if (status)
            return status;
        image_swap(&canvas->scratch->spare, image);
    }
    size_t n = image_values(image);
    for (size_t i = 0; i < n; i++)
        image->f32[i] -= mean->f32[i];
    return STATUS_OK;
}

static int mean_apply(const struct op *op, struct canvas *canvas, struct random *random,
                      struct error *err) {
    (void)random;
    if (op->values[MEAN_IMAGE].given)
        return subtract_picture(op, canvas, err);
    int status = match_channels(op, canvas, err);
    for (int c = 0; !status && c < canvas->point.count; c++)
        canvas->point.offset[c] -= channel_value(op, c);
    return status;
}

static int std_apply(const struct op *op, struct canvas *canvas, struct random *random,
                     struct error *err) {
    (void)random;
    int status = match_channels(op, canvas, err);
    for (int c = 0; !status && c < canvas->point.count; c++) {
        canvas->point.gain[c] /= channel_value(op, c);
        canvas->point.offset[c] /= channel_value(op, c);
    }
    return status;
}

static bool statistics_shape(const struct op *op, int *width, int *height, int *channels) {
    (void)width, (void)height;
    return op->values[0].count == 1 || op->values[0].count == *channels;
}

static bool mean_shape(const struct op *op, int *width, int *height, int *channels) {
    const struct image *mean = &op->values[MEAN_IMAGE].image;
    if (!op->values[MEAN_IMAGE].given)
        return statistics_shape(op, width, height, channels);
    return mean->width == *width && mean->height == *height && mean->channels == *channels;
}

const struct op_code op_scale = {.apply = scale_apply, .shape = statistics_shape};
const struct op_code op_mean = {.apply = mean_apply, .shape = mean_shape};
const struct op_code op_std = {.apply = std_apply, .shape = statistics_shape};
