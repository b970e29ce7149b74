// Convolutions of blocks: forward, and the error gradients of inputs.
#include "kernels/avx2/family.inc.h"

#include "kernels/block/conv.inc.h"

BLOCK_CONV_KERNELS(KERNEL_EXPORT)
