// Convolutions of blocks: the gradient of the weights.
#include "kernels/avx2/family.h"

#include "kernels/block/weights.h"

BLOCK_WEIGHTS_KERNELS(KERNEL_EXPORT)
