// Convolutions of blocks.
#include "kernels/avx2/family.inc.h"

#include "kernels/block/conv_blocks.inc.h"
