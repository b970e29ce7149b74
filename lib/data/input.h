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

// STATUS_DATA for a label outside 0..classes-1, unless classes is 0 or less.
int input_label(int32_t label, int classes, struct error *err);

// What randomness in the net (dropout) may depend on, for a sample in an epoch.
uint64_t input_draw(uint64_t seed, uint64_t epoch, uint64_t key_hash);

#endif
