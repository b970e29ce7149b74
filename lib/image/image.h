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

// Of a picture that was decoded at a fraction of its size (image/codec.h): the pixels are as large
// as `by` times `by` true ones, and the picture lies among them from (left, top) on, in true
// pixels. So the last columns and rows, or those of a picture turned upright the first, may show it
// in part.
struct image_true {
    int by; // 0: they are true pixels
    int left, top, width, height;
};

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
    struct image_true true_size;
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

// Gray (1 channel) or RGB (3) from the other, in place; 0: as it is. STATUS_DATA for a picture of
// neither.
int image_channels(struct image *image, int channels, struct error *err);

// Its sides before it was decoded at a fraction of them.
int image_true_width(const struct image *image);
int image_true_height(const struct image *image);
size_t image_values(const struct image *image); // width * height * channels
size_t image_bytes(const struct image *image);

#endif
