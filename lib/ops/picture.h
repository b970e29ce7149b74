// A picture of floats as one word of a chain, so that a chain needs no file beside it:
// WIDTHxHEIGHTxCHANNELS:BASE64, where the bytes are little-endian single floats, interleaved.
#ifndef ADAM_OPS_PICTURE_H
#define ADAM_OPS_PICTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "image/image.h"

// Freed with free(); NULL when out of memory. Bytes count as 0..255.
char *picture_write(const struct image *image);
// False when the word is none, or out of memory. The caller frees the image.
bool picture_read(struct image *image, const char *text, size_t length);

#endif
