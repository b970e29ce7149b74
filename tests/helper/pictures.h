// Known pictures for tests, and libjpeg's own writer for the kinds of JPEG that
// the library reads but does not write.
#ifndef ADAM_TESTS_PICTURES_H
#define ADAM_TESTS_PICTURES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "image/codec.h"

struct bytes {
    uint8_t *data;
    size_t size;
};

static inline void bytes_append(struct bytes *to, const void *data, size_t size) {
    to->data = realloc(to->data, to->size + size + 1);
    memcpy(to->data + to->size, data, size);
    to->size += size;
}

static inline void bytes_free(struct bytes *bytes) {
    free(bytes->data);
    *bytes = (struct bytes){0};
}

static inline unsigned noise(unsigned *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 16;
}

// A smooth picture, so that JPEG keeps it nearly as it is.
static inline void draw(struct image *image, int width, int height, int channels) {
    image_shape(image, width, height, channels, PIXEL_U8, NULL);
    uint8_t *p = image->u8;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++)
                *p++ = (uint8_t)(40 + 150 * (c == 1 ? y : x) / (c == 1 ? height : width) + 10 * c);
}

static inline void encode(struct bytes *out, const struct image *image, enum codec codec) {
    void *data;
    image_encode(&data, &out->size, image, codec, 95, NULL);
    out->data = data;
}

// 256 when they do not even have the same shape.
static inline int largest_difference(const struct image *a, const struct image *b) {
    int most = 0;
    if (a->width != b->width || a->height != b->height || a->channels != b->channels)
        return 256;
    for (size_t i = 0; i < image_values(a); i++)
        most = abs(a->u8[i] - b->u8[i]) > most ? abs(a->u8[i] - b->u8[i]) : most;
    return most;
}

static inline void jpeg_write(struct bytes *out, const struct image *image, J_COLOR_SPACE from,
                              J_COLOR_SPACE stored, void (*adjust)(j_compress_ptr)) {
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr mgr;
    unsigned long size = 0;
    info.err = jpeg_std_error(&mgr);
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &out->data, &size);
    info.image_width = (JDIMENSION)image->width;
    info.image_height = (JDIMENSION)image->height;
    info.input_components = image->channels;
    info.in_color_space = from;
    jpeg_set_defaults(&info);
    jpeg_set_colorspace(&info, stored);
    jpeg_set_quality(&info, 98, TRUE);
    if (adjust)
        adjust(&info);
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
        JSAMPROW row = image->u8 + info.next_scanline * (size_t)(image->width * image->channels);
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    out->size = size;
}

static inline void sequential_scans(j_compress_ptr info) {
    static const jpeg_scan_info scans[] = {
        {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    info->scan_info = scans;
    info->num_scans = 3;
}

#endif
