// The inner loop of image/hue.h, compiled once for each family of processors.
// Inside lib/image only.
#ifndef ADAM_IMAGE_HUE_ROWS_H
#define ADAM_IMAGE_HUE_ROWS_H

// Turns n pixels by 0 <= turn <= 6 sextants.
typedef void hue_row(float *r, float *g, float *b, float turn, int n);
hue_row hue_row_ref, hue_row_avx2;

#endif
