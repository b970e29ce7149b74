// Convolutions of blocks: the gradient of the weights.
#include "kernels/avx2/family.inc.h"

#include "kernels/block/weights.inc.h"

BLOCK_WEIGHTS_KERNELS(KERNEL_EXPORT)
