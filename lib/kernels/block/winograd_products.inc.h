// Products of tiles at one pair of points (winograd.inc.h): rows x columns vectors of sums, over
// outer x inner terms, of broadcast numbers a times vectors b.
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_PRODUCTS_INC_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_PRODUCTS_INC_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/block/winograd_points.inc.h"

enum {
    PRODUCT_ROWS = LANES > 8 ? 8 : 4,   // broadcast numbers, of no more maps than there are lanes
    PRODUCT_COLUMNS = WINOGRAD_COLUMNS, // vectors: 24 or 12 sums fit the registers
};

struct slice_product {
    const float *a, *b;
    size_t a_row, a_step, a_skip, b_column; // where these are no constants
    int outer, inner;
    float *to;
    size_t to_row, to_column; // to_row: of products_tiles
    bool add;
    const float *next; // the next numbers, or vectors, to ask for
};

typedef void product_function(const struct slice_product *);

// By columns and rows, less one. Maps x tiles: kernels are broadcast, summed over channels.
// Channels x bundles of maps: data are broadcast, summed over tiles and their lanes.
// Of single samples, tiles x bundles of maps: data are broadcast, summed over channels; and
// channels x bundles of maps: data are broadcast, summed over tiles.
extern product_function *const FAMILY(products_maps)[PRODUCT_COLUMNS][8];
extern product_function *const FAMILY(products_channels)[PRODUCT_COLUMNS][8];
extern product_function *const FAMILY(products_tiles)[PRODUCT_COLUMNS][8];
extern product_function *const FAMILY(products_ahead)[PRODUCT_COLUMNS][8]; // of kernels far away
extern product_function *const FAMILY(products_sums)[PRODUCT_COLUMNS][8];

#endif
