// Gradients of the weights of convolutions of blocks: the tiles of 16 lanes.
#include "kernels/avx512/family.inc.h"

#include "kernels/block/weights_tiles.inc.h"

GRADIENT_TILES_EXPORT(16)
