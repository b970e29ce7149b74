// Labelled pictures that the project makes itself: handwritten-looking digits,
// drawn as strokes in several styles, distorted, light on dark like MNIST.
#ifndef ADAM_PREP_DIGITS_H
#define ADAM_PREP_DIGITS_H

#include <stdint.h>

#include "image/image.h"

struct error;

#define DIGITS_CLASSES 10
#define DIGITS_MIN_SIZE 8
#define DIGITS_MAX_SIZE 1024

// What picture `index` shows: the digits come in turn, so that every ten
// pictures hold each of them once.
int digits_label(uint64_t index);

// Draws picture `index`, size x size, 8-bit gray. A pure function of (seed,
// index, size): any thread may draw any picture. STATUS_IO when out of memory,
// STATUS_DATA when the size is out of bounds.
int digits_draw(struct image *image, int size, uint64_t seed, uint64_t index, struct error *err);

#endif
