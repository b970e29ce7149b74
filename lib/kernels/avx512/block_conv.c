// Convolutions of blocks: forward, and the errors of inputs.
#include "kernels/avx512/family.h"

#include "kernels/block/conv.h"

BLOCK_CONV_KERNELS(KERNEL_EXPORT)
