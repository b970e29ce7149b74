// A picture as the floats that a model reads, the same for training, testing
// and predicting.
#ifndef ADAM_DATA_INPUT_H
#define ADAM_DATA_INPUT_H

#include "image/image.h"

// Writes the values of `image` (rows of interleaved channels, u8 or f32) into
// `to` as channels x height x width floats. STATUS_DATA when the picture has
// another shape; the error says both.
int input_fill(float *to, int channels, int height, int width, const struct image *image,
               struct error *err);

#endif
