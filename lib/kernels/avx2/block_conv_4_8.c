// Convolutions of blocks: the tiles of 4 and 8 lanes.
#include "kernels/avx2/family.inc.h"

#include "kernels/block/conv_tiles.inc.h"

CONV_TILES_EXPORT(4)
CONV_TILES_EXPORT_FULL(8)
