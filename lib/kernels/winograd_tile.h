// The tiles of Winograd's minimal filtering (block/winograd.inc.h). Inside lib/kernels.
#ifndef ADAM_KERNELS_WINOGRAD_TILE_H
#define ADAM_KERNELS_WINOGRAD_TILE_H

enum {
    WINOGRAD_TILE = 4,    // outputs along a side: more round worse, fewer save less
    WINOGRAD_COLUMNS = 3, // tiles multiplied at a time, as many as registers hold sums for
};

#endif
