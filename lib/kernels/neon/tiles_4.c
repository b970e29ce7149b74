// Convolutions of blocks: the tiles of 4 lanes.
#include "kernels/neon/family.inc.h"

#include "kernels/block/conv_tiles.inc.h"
#include "kernels/block/weights_tiles.inc.h"

CONV_TILES_EXPORT_FULL(4)
GRADIENT_TILES_EXPORT(4)
