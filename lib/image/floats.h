// Pixels as floats: scaled, and as one plane a channel.
#ifndef ADAM_IMAGE_FLOATS_H
#define ADAM_IMAGE_FLOATS_H

#include "image/image.h"

struct error;

// Channels that may each have a gain and an offset of their own.
#define IMAGE_LINEAR_MOST 16

// to = from * gain + offset, as floats; count is 1 (the same for all channels)
// or the number of channels. `to` and `from` differ.
int image_linear(struct image *to, const struct image *from, const float *gain, const float *offset,
                 int count, struct error *err);

// channels x height x width floats from interleaved pixels; bytes stay 0..255.
void image_planes(float *to, const struct image *from);

#endif
