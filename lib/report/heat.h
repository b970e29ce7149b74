// A confusion matrix in colours: white to blue where classes are right, white to orange where
// they are taken for others.
#ifndef ADAM_REPORT_HEAT_H
#define ADAM_REPORT_HEAT_H

#include <stdbool.h>

#include "train/evaluate.h"

struct error;

// The colour of a share of the true class, 0..1. The root lets few mistakes show.
void heat_colour(unsigned char rgb[3], double share, bool right);

// The whole matrix (tally->confusion) as a PNG, to be freed with free(): a pixel a cell, or,
// where there are very many classes, the largest share of a block of cells.
int heat_map(void **png, size_t *size, const struct tally *tally, struct error *err);

#endif
