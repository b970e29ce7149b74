// Convolutions of plain samples.
#include "kernels/avx2/family.inc.h"

#define FAMILY_GEMM FAMILY(gemm)
#include "kernels/portable/conv_direct.inc.h"

CONV_KERNELS(KERNEL_EXPORT)
