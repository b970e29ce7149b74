// Convolutions of blocks.
#include "kernels/avx512/family.inc.h"

#include "kernels/block/conv_blocks.inc.h"
