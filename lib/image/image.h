// A picture in memory.
#ifndef ADAM_IMAGE_IMAGE_H
#define ADAM_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

enum pixel {
    PIXEL_U8,  // 0..255
    PIXEL_F32, // any range
};

#define IMAGE_MAX_SIDE 65535
#define IMAGE_MAX_CHANNELS 4096
// Pixels of the standard deviation of a Gaussian, at most.
#define IMAGE_SIGMA_MOST 100

// height rows of width pixels of `channels` interleaved values, without gaps.
// Owns `data`; {0} is an empty image. Its memory only grows, so an image that
// is used again and again stops allocating.
struct image {
    int width, height, channels;
    enum pixel type;
    union {
        void *data;
        uint8_t *u8;
        float *f32;
    };
    size_t capacity; // bytes behind data
};

// Gives `image` this shape; the pixels are then undefined. STATUS_DATA when a
// side or the channels are out of bounds, STATUS_IO when out of memory (the
// image is then unchanged).
int image_shape(struct image *image, int width, int height, int channels, enum pixel type,
                struct error *err);

int image_copy(struct image *to, const struct image *from, struct error *err);
void image_swap(struct image *a, struct image *b);
void image_free(struct image *image);

// RGB to gray in place: luma of ITU-R BT.601, 0.299 R + 0.587 G + 0.114 B, as
// JPEG has it. A picture of other than 3 channels stays as it is.
void image_gray(struct image *image);

size_t image_values(const struct image *image); // width * height * channels
size_t image_bytes(const struct image *image);

#endif
