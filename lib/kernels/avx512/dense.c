// Matrix products and dense layers.
#include "kernels/avx512/family.h"

#define FAMILY_GEMM gemm
#include "kernels/portable/dense.h"

DENSE_KERNELS(KERNEL_EXPORT)
STRASSEN_KERNELS(KERNEL_EXPORT)
