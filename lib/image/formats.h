// What the codecs share among themselves. Private to lib/image.
#ifndef ADAM_IMAGE_FORMATS_H
#define ADAM_IMAGE_FORMATS_H

#include "image/codec.h"

struct error;

// As image_decode, of one format.
int jpeg_decode(struct image *image, const uint8_t *data, size_t size,
                const struct decode_options *options, struct error *err);
int png_decode(struct image *image, const uint8_t *data, size_t size,
               const struct decode_options *options, struct error *err);
// Like pnm_decode, but `size` bytes are all there will ever be: too few are an error.
int pnm_decode_last(struct image *image, const uint8_t *data, size_t size,
                    const struct decode_options *options, struct error *err);

// Gives an image its shape, of bytes, when there may be memory for that and for so many pixels
// `beside`.
int format_shape(struct image *image, int width, int height, int channels, uint64_t beside,
                 const struct decode_options *options, struct error *err);

// Bytes on their way out; owns data. {0} is empty.
struct encoded {
    uint8_t *data;
    size_t size, capacity;
};

// Room for `more` bytes behind the `size` that are there; false when out of memory.
bool encoded_reserve(struct encoded *out, size_t more);

// Behind what is there.
int jpeg_encode(struct encoded *out, const struct image *image, int quality, struct error *err);
int png_encode(struct encoded *out, const struct image *image, struct error *err);
int pnm_encode(struct encoded *out, const struct image *image, struct error *err);

#endif
