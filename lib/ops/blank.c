// Operations that blank rectangles.
#include <math.h>

#include "core/error.h"
#include "core/least.h"
#include "ops/op.h"

static void blank_row(struct image *image, int left, int right, int y, float fill) {
    size_t channels = (size_t)image->channels;
    size_t row = (size_t)y * (size_t)image->width * channels;
    for (size_t i = row + (size_t)left * channels; i < row + (size_t)right * channels; i++)
        if (image->type == PIXEL_U8)
            image->u8[i] = op_byte((double)fill);
        else
            image->f32[i] = fill;
}

// "we randomly select a pixel coordinate within the image as a center point and
//  then place the cutout mask around that location [...] allowing for part of
//  the mask to lie outside the borders of the image" (DeVries and Taylor 2017)
static int cutout_apply(const struct op *op, struct canvas *canvas, struct random *random,
                        struct error *err) {
    const struct op_value *size = &op->values[CUTOUT_SIZE];
    int status = canvas_settle(canvas, err);
    struct image *image = canvas->image;
    for (int i = 0; !status && i < (int)op->values[CUTOUT_COUNT].low; i++) {
        int left = (int)random_below(random, (uint32_t)image->width) - size->width / 2;
        int top = (int)random_below(random, (uint32_t)image->height) - size->height / 2;
        int right = least_int(left + size->width, image->width);
        int bottom = least_int(top + size->height, image->height);
        for (int y = most_int(top, 0); y < bottom; y++)
            blank_row(image, most_int(left, 0), right, y, (float)op->values[CUTOUT_FILL].low);
    }
    return status;
}

const struct op_code op_cutout = {.apply = cutout_apply, .draws = true};

// erase

struct rectangle {
    int left, top, right, bottom; // the last two are outside
};

// A rectangle inside the picture whose area and aspect are drawn, again while it does not fit
// (Zhong et al. 2017, algorithm 1). False: it did not at the last try.
static bool draw_rectangle(const struct op *op, const struct image *image, struct random *random,
                           struct rectangle *drawn) {
    enum { TRIES = 10 }; // as torchvision has it; the paper goes on without end
    for (int i = 0; i < TRIES; i++) {
        double area = op_draw(&op->values[ERASE_AREA], random) * image->width * image->height;
        double aspect = op_draw(&op->values[ERASE_ASPECT], random);
        double width = rint(sqrt(area / aspect)), height = rint(sqrt(area * aspect));
        if (width > image->width || height > image->height)
            continue;
        int left = (int)random_below(random, (uint32_t)(image->width - (int)width) + 1);
        int top = (int)random_below(random, (uint32_t)(image->height - (int)height) + 1);
        *drawn = (struct rectangle){left, top, left + (int)width, top + (int)height};
        return true;
    }
    return false;
}

// Values that are uniform in the full range.
static void noise_row(struct image *image, int left, int right, int y, struct random *random) {
    enum { BLOCK = 256 };
    uint32_t words[BLOCK];
    size_t channels = (size_t)image->channels, row = (size_t)y * (size_t)image->width * channels;
    size_t end = row + (size_t)right * channels;
    for (size_t i = row + (size_t)left * channels; i < end; i += BLOCK) {
        size_t n = end - i < BLOCK ? end - i : BLOCK;
        random_words(random, words, n);
        for (size_t k = 0; k < n; k++)
            if (image->type == PIXEL_U8)
                image->u8[i + k] = (uint8_t)(words[k] >> 24);
            else
                image->f32[i + k] = (float)(words[k] >> 8) * 0x1p-24f;
    }
}

static int erase_apply(const struct op *op, struct canvas *canvas, struct random *random,
                       struct error *err) {
    struct rectangle r;
    int status = canvas_settle(canvas, err);
    if (status || !draw_rectangle(op, canvas->image, random, &r))
        return status;
    for (int y = r.top; y < r.bottom; y++)
        if (op->values[ERASE_WITH].word == WITH_NOISE)
            noise_row(canvas->image, r.left, r.right, y, random);
        else
            blank_row(canvas->image, r.left, r.right, y, (float)op->values[ERASE_FILL].low);
    return STATUS_OK;
}

const struct op_code op_erase = {.apply = erase_apply, .draws = true};
