// Geometric transformations as one inverse mapping with bilinear sampling.
#ifndef ADAM_IMAGE_WARP_H
#define ADAM_IMAGE_WARP_H

#include "image/image.h"

enum border {
    BORDER_VALUE,   // a constant
    BORDER_EDGE,    // the nearest pixel
    BORDER_REFLECT, // mirrored at the edge, the edge pixel twice
};

// result(x, y) = source(a x + b y + c, d x + e y + f), pixel centres at integers.
struct affine {
    float a, b, c, d, e, f;
};

struct affine affine_identity(void);
// First `first`, then `second`, both as inverse mappings.
struct affine affine_then(struct affine first, struct affine second);

// `to` gets width x height pixels of the type and channels of `from`.
int image_warp(struct image *to, const struct image *from, int width, int height,
               struct affine map, enum border border, float value, struct error *err);

// The same with a displacement in pixels added for each result pixel (dx and dy
// have width * height values): Simard, Steinkraus and Platt 2003, section 2.
int image_warp_field(struct image *to, const struct image *from, int width, int height,
                     const float *dx, const float *dy, enum border border, float value,
                     struct error *err);

#endif
