// Pictures smoothed and sharpened. The same bytes on every processor.
#ifndef ADAM_IMAGE_BLUR_H
#define ADAM_IMAGE_BLUR_H

#include "image/image.h"

// Convolves with a Gaussian that sums to 1 and ends at three sigma; outside, the picture is
// mirrored at its edge, the edge's pixels twice. `room` has image_blur_room floats.
// 0 < sigma <= IMAGE_SIGMA_MOST.
void image_blur(struct image *image, double sigma, float *room);
size_t image_blur_room(const struct image *image, double sigma);

// to = smooth + factor * (from - smooth), where `smooth` is the mean of a pixel and its eight
// neighbours, itself with a weight of 5; pixels at the edge, which lack some, are copied.
// `to` and `from` differ and have one shape.
void image_sharpen(struct image *to, const struct image *from, double factor);

#endif
