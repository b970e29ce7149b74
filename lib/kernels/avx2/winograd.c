// Convolutions of blocks by Winograd's minimal filtering.
#include "kernels/avx2/family.h"

#include "kernels/block/winograd.h"

WINOGRAD_KERNELS(KERNEL_EXPORT)
