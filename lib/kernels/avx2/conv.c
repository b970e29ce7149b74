// Convolutions of plain samples.
#include "kernels/avx2/family.h"

#define FAMILY_GEMM FAMILY(gemm)
#include "kernels/portable/conv_direct.h"

CONV_KERNELS(KERNEL_EXPORT)
