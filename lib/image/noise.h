// Normal noise on pictures.
#ifndef ADAM_IMAGE_NOISE_H
#define ADAM_IMAGE_NOISE_H

#include "core/random.h"
#include "image/image.h"

// Adds to every value a normal number with this standard deviation, a share of
// the full range: 255 for bytes, which are rounded and kept within it, 1 for
// floats. The same numbers on every processor.
void image_noise(struct image *image, double deviation, struct random *random);

#endif
