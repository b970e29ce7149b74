// A Gaussian over a field of floats. Inside lib/image only.
#ifndef ADAM_IMAGE_GAUSS_H
#define ADAM_IMAGE_GAUSS_H

#include <stddef.h>

#include "image/image.h"

enum { GAUSS_RADIUS_MOST = 3 * IMAGE_SIGMA_MOST };

// It ends at three sigma: ceil(3 sigma). 0 < sigma <= IMAGE_SIGMA_MOST.
int gauss_radius(double sigma);

// Convolves `field`, height rows of width pixels of `channels` interleaved floats, in place with
// a Gaussian that sums to 1 and finds zeros outside the field. `room` has gauss_room floats.
void gauss_smooth(float *field, float *room, int width, int height, int channels, double sigma);
size_t gauss_room(int width, int height, int channels, double sigma);

// The loops of it, for weight[0] in the middle and weight[1..radius] on both sides.
typedef void gauss_filter(float *field, float *room, int width, int height, int channels,
                          const float *weight, int radius);
gauss_filter gauss_filter_ref, gauss_filter_avx2;

#endif
