// Convolutions of blocks: the tiles of 1 lane.
#include "kernels/neon/family.inc.h"

#include "kernels/block/conv_tiles.inc.h"
#include "kernels/block/weights_tiles.inc.h"

CONV_TILES_EXPORT(1)
GRADIENT_TILES_EXPORT(1)
