// Resampling to another size.
#ifndef ADAM_IMAGE_RESIZE_H
#define ADAM_IMAGE_RESIZE_H

#include "image/image.h"

struct error;

enum filter {
    FILTER_AREA,     // box, antialiased: each result is the mean of what it covers
    FILTER_BILINEAR, // triangle, widened by the scale when shrinking
    FILTER_LANCZOS,  // 3 lobes, widened by the scale when shrinking
};

// Any number of channels, u8 or f32. `to` and `from` differ. Only the part of
// the result from (left, top), width x height, of a whole result of full_width x
// full_height is computed: resize and crop in one pass. A call allocates its
// weights and one row of samples, and frees them; `to` grows when it must. A picture
// that was decoded at a fraction of its size (image.h) becomes what its true pixels
// would, as far as the fraction shows them.
// 8-bit samples keep a fraction between the passes and are clamped once, at the
// end; the loops for each family of processors give the same bits.
// STATUS_DATA when the whole is out of bounds or the part is outside of it.
int image_resize(struct image *to, const struct image *from, enum filter filter, int full_width,
                 int full_height, int left, int top, int width, int height, struct error *err);

#endif
