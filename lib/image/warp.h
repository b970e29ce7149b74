// Geometric transformations as one inverse mapping with bilinear sampling.
#ifndef ADAM_IMAGE_WARP_H
#define ADAM_IMAGE_WARP_H

#include "image/image.h"

struct error;

enum border {
    BORDER_VALUE,   // a constant
    BORDER_EDGE,    // the nearest pixel
    BORDER_REFLECT, // mirrored at the edge, the edge pixel twice
};

// result(x, y) = source(a x + b y + c, d x + e y + f), pixel centres at integers.
struct affine {
    double a, b, c, d, e, f;
};

struct affine affine_identity(void);
// First `first`, then `second`, both as inverse mappings.
struct affine affine_then(struct affine first, struct affine second);
// Whether it only mirrors and moves by whole pixels, so that nothing is interpolated.
bool affine_whole(const struct affine *map);

// `to` gets width x height pixels of the type and channels of `from`; they
// differ. A map of whole pixels copies; else u8 is sampled in fixed point (the
// same bytes on every processor, at most one level from the exact value), f32
// in floats. STATUS_DATA when the map reaches too far or the size is out of
// bounds.
int image_warp(struct image *to, const struct image *from, int width, int height, struct affine map,
               enum border border, float value, struct error *err);

// The same with a displacement added to each result pixel before the map is
// applied (dx and dy have width * height values, in pixels of the result):
// Simard, Steinkraus and Platt 2003, section 2.
int image_warp_field(struct image *to, const struct image *from, int width, int height,
                     struct affine map, const float *dx, const float *dy, enum border border,
                     float value, struct error *err);

#endif
