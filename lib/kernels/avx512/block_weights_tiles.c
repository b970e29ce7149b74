// Gradients of the weights of convolutions of blocks: the tiles.
#include "kernels/avx512/family.inc.h"

#include "kernels/block/weights_tiles.inc.h"
