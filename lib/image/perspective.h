// A picture seen at an angle: its corners are moved, and its inside follows by the one projective
// map that does so (Heckbert, "Fundamentals of Texture Mapping and Image Warping", 1989, 2.2).
#ifndef ADAM_IMAGE_PERSPECTIVE_H
#define ADAM_IMAGE_PERSPECTIVE_H

struct point {
    double x, y;
};

// Where the corners come to lie: top left, top right, bottom right, bottom left, in shares of
// width and height, so that {0, 0} {1, 0} {1, 1} {0, 1} leaves all as it is. They must be convex.
struct quadrangle {
    struct point corner[4];
};

// Fills dx and dy (width * height each) for image_warp_field: how far from each pixel of the result
// the place is, in pixels, from which it is taken.
void perspective_fields(float *dx, float *dy, int width, int height, const struct quadrangle *to);

#endif
