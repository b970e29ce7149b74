// A symmetric separable filter over a field of floats. Inside lib/image only.
#ifndef ADAM_IMAGE_GAUSS_H
#define ADAM_IMAGE_GAUSS_H

// Filters `field` (height rows of width) in place with weight[0] in the middle
// and weight[1..radius] on both sides, along rows and columns; outside the field
// are zeros. `room` has (width * height) + (width + 2 * radius) floats.
typedef void gauss_filter(float *field, float *room, int width, int height, const float *weight,
                          int radius);
gauss_filter gauss_filter_ref, gauss_filter_avx2;

#endif
