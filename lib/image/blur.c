#include "image/blur.h"

#include <string.h>

#include "image/gauss.h"

// The picture as floats with `radius` more pixels on each side, which the filter's zeros reach
// only after that many.
struct field {
    float *values;
    int width, height, channels, radius;
};

static struct field field_around(const struct image *image, double sigma, float *values) {
    int radius = gauss_radius(sigma);
    return (struct field){
        .values = values,
        .width = image->width + 2 * radius,
        .height = image->height + 2 * radius,
        .channels = image->channels,
        .radius = radius,
    };
}

static size_t field_size(const struct field *field) {
    return (size_t)field->width * (size_t)field->height * (size_t)field->channels;
}

static float *field_row(const struct field *field, int y) {
    return field->values + (size_t)y * (size_t)field->width * (size_t)field->channels;
}

size_t image_blur_room(const struct image *image, double sigma) {
    struct field field = field_around(image, sigma, NULL);
    return field_size(&field) + gauss_room(field.width, field.height, field.channels, sigma);
}

// The one of n pixels in a row that is seen at i, which may lie outside.
static int mirrored(int i, int n) {
    i %= 2 * n;
    i += i < 0 ? 2 * n : 0;
    return i < n ? i : 2 * n - 1 - i;
}

static void read_row(float *to, const struct image *image, int y) {
    size_t n = (size_t)image->width * (size_t)image->channels, from = (size_t)y * n;
    for (size_t i = 0; i < n && image->type == PIXEL_U8; i++)
        to[i] = image->u8[from + i];
    if (image->type == PIXEL_F32)
        memcpy(to, image->f32 + from, n * sizeof *to);
}

// The pixels of a row beside those of the picture.
static void mirror_sides(const struct field *field, float *row) {
    int inner = field->width - 2 * field->radius;
    size_t size = (size_t)field->channels;
    for (int k = 0; k < 2 * field->radius; k++) {
        int x = k < field->radius ? k : k + inner;
        int from = field->radius + mirrored(x - field->radius, inner);
        memcpy(row + (size_t)x * size, row + (size_t)from * size, size * sizeof *row);
    }
}

static void fill_field(const struct field *field, const struct image *image) {
    size_t row_size = (size_t)field->width * (size_t)field->channels * sizeof(float);
    for (int y = 0; y < image->height; y++) {
        float *row = field_row(field, y + field->radius);
        read_row(row + (size_t)field->radius * (size_t)field->channels, image, y);
        mirror_sides(field, row);
    }
    for (int k = 0; k < 2 * field->radius; k++) {
        int y = k < field->radius ? k : k + image->height;
        int from = field->radius + mirrored(y - field->radius, image->height);
        memcpy(field_row(field, y), field_row(field, from), row_size);
    }
}

// A mean of bytes is a byte: only rounded.
static void write_row(struct image *image, int y, const float *from) {
    size_t n = (size_t)image->width * (size_t)image->channels, to = (size_t)y * n;
    for (size_t i = 0; i < n && image->type == PIXEL_U8; i++)
        image->u8[to + i] = (uint8_t)(int)(from[i] + 0.5f);
    if (image->type == PIXEL_F32)
        memcpy(image->f32 + to, from, n * sizeof *from);
}

void image_blur(struct image *image, double sigma, float *room) {
    struct field field = field_around(image, sigma, room);
    fill_field(&field, image);
    gauss_smooth(field.values, room + field_size(&field), field.width, field.height, field.channels,
                 sigma);
    for (int y = 0; y < image->height; y++)
        write_row(image, y,
                  field_row(&field, y + field.radius) +
                      (size_t)field.radius * (size_t)field.channels);
}
