// Operations on the levels of values: some for all pictures alike, some by the levels that a
// picture has, each channel by itself.
#include <math.h>

#include "core/error.h"
#include "ops/op.h"

// posterize and solarize: each level by itself.

static int posterize_apply(const struct op *op, struct canvas *canvas, struct random *random,
                           struct error *err) {
    uint8_t table[256];
    unsigned kept = 0xff00U >> (int)op->values[0].low;
    (void)random;
    int status = canvas_needs_bytes(canvas, op, err);
    if (status)
        return status;
    for (unsigned v = 0; v < 256; v++)
        table[v] = (uint8_t)(v & kept);
    canvas_map(canvas, table);
    return STATUS_OK;
}

const struct op_code op_posterize = {.apply = posterize_apply};

static int solarize_apply(const struct op *op, struct canvas *canvas, struct random *random,
                          struct error *err) {
    double threshold = op_draw(&op->values[0], random);
    if (canvas_type(canvas) == PIXEL_U8) {
        uint8_t table[256];
        for (int v = 0; v < 256; v++)
            table[v] = (uint8_t)(v >= 255 * threshold ? 255 - v : v);
        canvas_map(canvas, table);
        return STATUS_OK;
    }
    int status = canvas_settle(canvas, err);
    size_t n = status ? 0 : image_values(canvas->image);
    for (size_t i = 0; i < n; i++)
        if (canvas->image->f32[i] >= (float)threshold)
            canvas->image->f32[i] = 1 - canvas->image->f32[i];
    return status;
}

const struct op_code op_solarize = {.apply = solarize_apply};

// autocontrast and equalize: by how often a channel has each level.

static void count_levels(const struct image *image, int channel, size_t counts[256]) {
    size_t n = image_values(image), step = (size_t)image->channels;
    for (int v = 0; v < 256; v++)
        counts[v] = 0;
    for (size_t i = (size_t)channel; i < n; i += step)
        counts[image->u8[i]]++;
}

static void map_channel(struct image *image, int channel, const uint8_t table[256]) {
    size_t n = image_values(image), step = (size_t)image->channels;
    for (size_t i = (size_t)channel; i < n; i += step)
        image->u8[i] = table[image->u8[i]];
}

// The lowest level becomes 0, the highest 255. False: there is only one, and it stays.
static bool stretch_levels(uint8_t table[256], const size_t counts[256]) {
    int low = 0, high = 255;
    while (!counts[low])
        low++;
    while (!counts[high])
        high--;
    for (int v = low; v <= high && low < high; v++)
        table[v] = op_byte(255.0 * (v - low) / (high - low));
    return low < high;
}

// Levels become as frequent as they can: level v becomes the share of values below it, in steps
// that give the highest 255. In whole numbers, as PIL's ImageOps.equalize has it, so that the
// strengths that are published for it hold. False: the picture has too few values.
static bool equalize_levels(uint8_t table[256], const size_t counts[256]) {
    size_t values = 0, last = 0;
    for (int v = 0; v < 256; v++) {
        values += counts[v];
        last = counts[v] ? counts[v] : last;
    }
    size_t step = (values - last) / 255, below = step / 2;
    for (int v = 0; v < 256 && step; v++) {
        table[v] = (uint8_t)(below / step < 255 ? below / step : 255);
        below += counts[v];
    }
    return step > 0;
}

// Each channel through the table that `levels` makes of it.
static void map_by_levels(struct image *image,
                          bool (*levels)(uint8_t table[256], const size_t counts[256])) {
    for (int channel = 0; channel < image->channels; channel++) {
        size_t counts[256];
        uint8_t table[256];
        count_levels(image, channel, counts);
        if (levels(table, counts))
            map_channel(image, channel, table);
    }
}

// The same for floats, whose full range is 1.
static void stretch_floats(struct image *image, int channel) {
    size_t n = image_values(image), step = (size_t)image->channels;
    float low = image->f32[channel], high = low;
    for (size_t i = (size_t)channel; i < n; i += step) {
        low = fminf(low, image->f32[i]);
        high = fmaxf(high, image->f32[i]);
    }
    for (size_t i = (size_t)channel; i < n && low < high; i += step)
        image->f32[i] = (image->f32[i] - low) / (high - low);
}

static int autocontrast_apply(const struct op *op, struct canvas *canvas, struct random *random,
                              struct error *err) {
    (void)op, (void)random;
    int status = canvas_settle(canvas, err);
    if (status)
        return status;
    if (canvas->image->type == PIXEL_U8)
        map_by_levels(canvas->image, stretch_levels);
    else
        for (int channel = 0; channel < canvas->image->channels; channel++)
            stretch_floats(canvas->image, channel);
    return STATUS_OK;
}

const struct op_code op_autocontrast = {.apply = autocontrast_apply};

static int equalize_apply(const struct op *op, struct canvas *canvas, struct random *random,
                          struct error *err) {
    (void)random;
    int status = canvas_needs_bytes(canvas, op, err);
    if (!status)
        status = canvas_settle(canvas, err);
    if (!status)
        map_by_levels(canvas->image, equalize_levels);
    return status;
}

const struct op_code op_equalize = {.apply = equalize_apply};
