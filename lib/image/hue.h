// Colours turned round the circle of hues.
#ifndef ADAM_IMAGE_HUE_H
#define ADAM_IMAGE_HUE_H

#include "image/image.h"

// Turns the hue of every pixel of an RGB picture, in the HSV model; value and saturation stay.
// 120 degrees turn red into green. The same bytes on every processor.
void image_turn_hue(struct image *image, double degrees);

#endif
