// Convolutions of blocks by Winograd's minimal filtering.
#include "kernels/avx512/family.inc.h"

#include "kernels/block/winograd.inc.h"
#include "kernels/block/winograd_gradient.inc.h"

WINOGRAD_KERNELS(KERNEL_EXPORT)
