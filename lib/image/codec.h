// Encoded bytes to pixels and back: JPEG (libjpeg-turbo), PNG (libpng), PNM.
// Every byte is distrusted: sizes are checked against the limits before any
// allocation, a truncated or damaged picture is STATUS_DATA, never a crash and
// never a half-gray picture.
#ifndef ADAM_IMAGE_CODEC_H
#define ADAM_IMAGE_CODEC_H

#include "image/image.h"

struct error;

enum codec { CODEC_NONE, CODEC_JPEG, CODEC_PNG, CODEC_PNM };

// What the first bytes say; 12 bytes are enough.
enum codec codec_of(const void *data, size_t size);

// File name extension without the dot ("jpg", "png", "ppm"); and back, in any case.
const char *codec_extension(enum codec codec);
enum codec codec_of_extension(const char *extension);

struct decode_options {
    uint64_t max_pixels; // width * height of the encoded picture; 0 means 100 million
    int channels;        // 0 as the picture has it (gray 1, else 3), 1 gray, 3 RGB
    // The smallest size that is still useful: with the DCT of JPEG a picture is
    // decoded at 1/2, 1/4 or 1/8 as long as both sides stay at least this long
    // (after EXIF orientation), and says so (image->true_size). 0 sets no bound to that
    // side, two zeros mean full size.
    int least_width, least_height;
    // NULL, or told how many pixels are about to have memory; returns when they may. Those that a
    // progressive JPEG is kept in until it is complete count, too.
    void (*claim)(void *self, uint64_t pixels);
    void *self;
};

// Pixels that a picture may have with these options.
uint64_t decode_most(const struct decode_options *options);

// Refuses a picture that is empty, has a side over IMAGE_MAX_SIDE or more pixels
// than the options allow: STATUS_DATA. Called before anything of its size is allocated.
int format_check_size(uint64_t width, uint64_t height, const struct decode_options *options,
                      struct error *err);

// To 8-bit gray or RGB. PNG: every colour type, depth and interlacing, alpha
// composed on white, 16 bits to 8. JPEG: baseline and progressive, gray, YCbCr,
// CMYK and YCCK (inverted where Adobe's marker says so). EXIF orientation is
// applied. PNM: P1 to P6, maxval up to 65535. Gray of colour is luma (image_gray).
// STATUS_DATA with the reason when it is no picture, truncated, damaged or over
// the limits; the content of `image` is then undefined. STATUS_IO: out of memory.
int image_decode(struct image *image, const void *data, size_t size,
                 const struct decode_options *options, struct error *err);

// One PNM picture at the head of data; *used is its length in bytes, for streams
// of many. STATUS_OK with *used = 0 when `size` bytes are too few to tell; when
// no more will come, image_decode decodes the rest (the last number of a plain
// picture needs nothing behind it) or says that it is truncated.
int pnm_decode(struct image *image, const void *data, size_t size, size_t *used,
               const struct decode_options *options, struct error *err);

// 8-bit gray or RGB only, else STATUS_DATA. *data is malloc'ed and the caller's. The same picture
// gives the same bytes. quality (1..100) is for JPEG, 0 means 92; from 90 on the
// colours keep their full resolution.
int image_encode(void **data, size_t *size, const struct image *image, enum codec codec,
                 int quality, struct error *err);

#endif
