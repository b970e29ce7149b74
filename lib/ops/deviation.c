// How far apart the values of pictures lie behind a chain.
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "ops/ops.h"

// The values of most photographs deviate by about a quarter of their range.
#define DEVIATIONS 4

static double mean_of(const struct image *image) {
    size_t n = image_values(image);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += image->type == PIXEL_U8 ? (double)image->u8[i] : (double)image->f32[i];
    return sum / (double)n;
}

// The picture, all of whose bytes become this value, behind the chain.
static int mean_behind(double *mean, const struct ops *ops, struct ops_scratch *scratch,
                       const struct image *size, int value, struct error *err) {
    struct image image = {0};
    int status = image_shape(&image, size->width, size->height, size->channels, PIXEL_U8, err);
    if (!status) {
        memset(image.u8, value, image_values(&image));
        status = ops_apply(ops, scratch, &image, (struct ops_draw){0}, err);
    }
    if (!status)
        *mean = mean_of(&image);
    image_free(&image);
    return status;
}

int ops_deviation(double *deviation, const struct ops *ops, int width, int height, int channels,
                  struct error *err) {
    const struct image size = {.width = width, .height = height, .channels = channels};
    struct ops_scratch *scratch = ops_scratch_new();
    double black = 0, white = 0;
    int status = scratch ? mean_behind(&black, ops, scratch, &size, 0, err) : error_nomem(err);
    if (!status)
        status = mean_behind(&white, ops, scratch, &size, 255, err);
    *deviation = fabs(white - black) / DEVIATIONS;
    ops_scratch_free(scratch);
    return status;
}
