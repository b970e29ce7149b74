// How the camera was held: the Orientation tag (0x0112) of EXIF 2.3, section
// 4.6.4, and turning a picture upright by it.
#ifndef ADAM_IMAGE_EXIF_H
#define ADAM_IMAGE_EXIF_H

#include "image/image.h"

struct error;

// 1..8; 1, upright, when there is none or it is damaged.
int exif_orientation(const uint8_t *data, size_t size); // a TIFF block: PNG's eXIf
int exif_orientation_jpeg(const uint8_t *data, size_t size);

// Whether turning upright exchanges width and height.
bool exif_transposes(int orientation);

// Turns an 8-bit picture, gray or RGB, upright. STATUS_IO when out of memory.
int exif_apply(struct image *image, int orientation, struct error *err);

#endif
