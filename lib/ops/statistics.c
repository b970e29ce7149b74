// Operations that normalise: they turn values into floats, and several in a row
// become one multiplication and one addition.
#include "ops/op.h"

// Gives the waiting line as many channels as the list has, if it has only one.
static int match_channels(const struct op *op, struct canvas *canvas, struct error *err) {
    struct point *point = &canvas->point;
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

static double listed(const struct op *op, int channel) {
    const struct op_value *value = &op->values[0];
    return (double)value->list[value->count == 1 ? 0 : channel];
}

static int scale_apply(const struct op *op, struct canvas *canvas, struct random *random,
                       struct error *err) {
    (void)random;
    int status = match_channels(op, canvas, err);
    for (int c = 0; !status && c < canvas->point.count; c++) {
        canvas->point.gain[c] *= listed(op, c);
        canvas->point.offset[c] *= listed(op, c);
    }
    return status;
}

static int mean_apply(const struct op *op, struct canvas *canvas, struct random *random,
                      struct error *err) {
    (void)random;
    int status = match_channels(op, canvas, err);
    for (int c = 0; !status && c < canvas->point.count; c++)
        canvas->point.offset[c] -= listed(op, c);
    return status;
}

static int std_apply(const struct op *op, struct canvas *canvas, struct random *random,
                     struct error *err) {
    (void)random;
    int status = match_channels(op, canvas, err);
    for (int c = 0; !status && c < canvas->point.count; c++) {
        canvas->point.gain[c] /= listed(op, c);
        canvas->point.offset[c] /= listed(op, c);
    }
    return status;
}

static bool statistics_shape(const struct op *op, int *width, int *height, int *channels) {
    (void)width, (void)height;
    return op->values[0].count == 1 || op->values[0].count == *channels;
}

const struct op_code op_scale = {scale_apply, statistics_shape};
const struct op_code op_mean = {mean_apply, statistics_shape};
const struct op_code op_std = {std_apply, statistics_shape};
