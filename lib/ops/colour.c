// Operations that change values where they are. On bytes the full range is 255,
// and results are rounded and kept within it; on floats it is 1, without bounds.
#include "core/error.h"
#include "image/hue.h"
#include "image/luma.h"
#include "image/noise.h"
#include "ops/op.h"

static void map_linear(struct canvas *canvas, double scale, double offset) {
    uint8_t table[256];
    for (int v = 0; v < 256; v++)
        table[v] = op_byte(scale * v + offset);
    canvas_map(canvas, table);
}

// Every value becomes scale * v + offset * full range.
static int scale_and_offset(struct canvas *canvas, double scale, double offset, struct error *err) {
    if (canvas_type(canvas) == PIXEL_U8) {
        map_linear(canvas, scale, offset * 255);
        return STATUS_OK;
    }
    int status = canvas_settle(canvas, err);
    size_t n = status ? 0 : image_values(canvas->image);
    for (size_t i = 0; i < n; i++)
        canvas->image->f32[i] = (float)scale * canvas->image->f32[i] + (float)offset;
    return status;
}

static int brightness_apply(const struct op *op, struct canvas *canvas, struct random *random,
                            struct error *err) {
    return scale_and_offset(canvas, op_draw(&op->values[0], random), 0, err);
}

const struct op_code op_brightness = {.apply = brightness_apply};

static int invert_apply(const struct op *op, struct canvas *canvas, struct random *random,
                        struct error *err) {
    (void)op, (void)random;
    return scale_and_offset(canvas, -1, 1, err);
}

const struct op_code op_invert = {.apply = invert_apply};

// The mean over the picture: of luma when it has three channels, else of all values.
static double mean_of(const struct image *image) {
    size_t pixels = (size_t)image->width * (size_t)image->height;
    size_t n = image->channels == 3 ? pixels : image_values(image);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (image->type == PIXEL_U8)
            sum += image->channels == 3 ? luma_u8(image->u8 + 3 * i) : image->u8[i];
        else
            sum += (double)(image->channels == 3 ? luma_f32(image->f32 + 3 * i) : image->f32[i]);
    return sum / (double)n;
}

static int contrast_apply(const struct op *op, struct canvas *canvas, struct random *random,
                          struct error *err) {
    double factor = op_draw(&op->values[0], random);
    int status = canvas_settle(canvas, err);
    if (status)
        return status;
    double full = canvas->image->type == PIXEL_U8 ? 255 : 1;
    return scale_and_offset(canvas, factor, (1 - factor) * mean_of(canvas->image) / full, err);
}

const struct op_code op_contrast = {.apply = contrast_apply};

static int saturation_apply(const struct op *op, struct canvas *canvas, struct random *random,
                            struct error *err) {
    double factor = op_draw(&op->values[0], random);
    int status = canvas_settle(canvas, err);
    struct image *image = canvas->image;
    if (status || image->channels != 3)
        return status;
    size_t n = image_values(image);
    for (size_t i = 0; i < n; i += 3)
        if (image->type == PIXEL_U8) {
            uint8_t *p = image->u8 + i;
            double gray = (1 - factor) * luma_u8(p);
            for (int c = 0; c < 3; c++)
                p[c] = op_byte(gray + factor * p[c]);
        } else {
            float *p = image->f32 + i, gray = (float)(1 - factor) * luma_f32(p);
            for (int c = 0; c < 3; c++)
                p[c] = gray + (float)factor * p[c];
        }
    return STATUS_OK;
}

const struct op_code op_saturation = {.apply = saturation_apply};

static int hue_apply(const struct op *op, struct canvas *canvas, struct random *random,
                     struct error *err) {
    double degrees = op_draw(&op->values[0], random);
    int status = canvas_settle(canvas, err);
    if (!status && canvas->image->channels == 3)
        image_turn_hue(canvas->image, degrees);
    return status;
}

const struct op_code op_hue = {.apply = hue_apply};

// With a probability below 1 all pictures must keep one shape, so the channels
// stay and become equal.
static bool gray_keeps_channels(const struct op *op) {
    return op->probability < 1;
}

static bool gray_shape(const struct op *op, int *width, int *height, int *channels) {
    (void)width, (void)height;
    if (*channels != 1 && *channels != 3)
        return false;
    if (!gray_keeps_channels(op))
        *channels = 1;
    return true;
}

// Gray in all three channels.
static void wash_out(struct image *image) {
    size_t n = image_values(image);
    for (size_t i = 0; i < n; i += 3)
        if (image->type == PIXEL_U8)
            image->u8[i] = image->u8[i + 1] = image->u8[i + 2] = luma_u8(image->u8 + i);
        else
            image->f32[i] = image->f32[i + 1] = image->f32[i + 2] = luma_f32(image->f32 + i);
}

static int gray_apply(const struct op *op, struct canvas *canvas, struct random *random,
                      struct error *err) {
    (void)random;
    int channels = canvas->image->channels;
    if (channels == 1)
        return STATUS_OK;
    if (channels != 3)
        return error_set(err, STATUS_DATA, "gray: a picture of %d channels has no gray", channels);
    int status = canvas_settle(canvas, err);
    if (!status)
        (gray_keeps_channels(op) ? wash_out : image_gray)(canvas->image);
    return status;
}

const struct op_code op_gray = {.apply = gray_apply, .shape = gray_shape};

static int noise_apply(const struct op *op, struct canvas *canvas, struct random *random,
                       struct error *err) {
    double deviation = op_draw(&op->values[0], random);
    int status = canvas_settle(canvas, err);
    if (!status)
        image_noise(canvas->image, deviation, random);
    return status;
}

const struct op_code op_noise = {.apply = noise_apply, .draws = true};
