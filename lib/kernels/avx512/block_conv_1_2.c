// Convolutions of blocks: the tiles of 1 and 2 lanes.
#include "kernels/avx512/family.inc.h"

#include "kernels/block/conv_tiles.inc.h"

CONV_TILES_EXPORT(1)
CONV_TILES_EXPORT(2)
