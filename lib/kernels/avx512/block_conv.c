// Convolutions of blocks: forward, and the error gradients of inputs.
#include "kernels/avx512/family.inc.h"

#include "kernels/block/conv.inc.h"

BLOCK_CONV_KERNELS(KERNEL_EXPORT)
