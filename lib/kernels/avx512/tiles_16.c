// Convolutions of blocks: the tiles of 16 lanes, those of gradients of weights apart.
#include "kernels/avx512/family.inc.h"

#include "kernels/block/conv_tiles.inc.h"

CONV_TILES_EXPORT_FULL(16)
