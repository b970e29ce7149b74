// Convolutions of blocks.
#include "kernels/neon/family.inc.h"

#include "kernels/block/conv_blocks.inc.h"
