// Dense layers in fixed point: on processors with VNNI only.
#include "kernels/avx2/family.h"

#include "kernels/portable/dense_fixed.h"

FIXED_KERNELS(KERNEL_EXPORT)
