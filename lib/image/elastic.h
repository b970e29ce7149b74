// Random displacement fields for elastic distortions.
//
// "the image deformations were created by first generating random displacement
//  fields, that is Dx(x,y) = rand(-1,+1) and Dy(x,y) = rand(-1,+1), where
//  rand(-1,+1) is a random number between -1 and +1, generated with a uniform
//  distribution. The fields Dx and Dy are then convolved with a Gaussian of
//  standard deviation sigma (in pixels). [...] The displacement fields are then
//  multiplied by a scaling factor alpha that controls the intensity of the
//  deformation." (Simard, Steinkraus and Platt 2003, section 2)
#ifndef ADAM_IMAGE_ELASTIC_H
#define ADAM_IMAGE_ELASTIC_H

#include <stddef.h>

#include "core/random.h"
#include "image/image.h"

// Floats of room that elastic_fields needs beside its results.
size_t elastic_room(int width, int height, double sigma);

// Fills dx and dy (width * height each). The Gaussian sums to 1, ends at three
// sigma, and finds zeros outside the picture. 0 < sigma <= IMAGE_SIGMA_MOST.
void elastic_fields(float *dx, float *dy, float *room, int width, int height, double sigma,
                    double alpha, struct random *random);

#endif
