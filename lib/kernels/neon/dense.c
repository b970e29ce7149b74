// Matrix products and dense layers.
#include "kernels/neon/family.inc.h"

#define FAMILY_GEMM gemm
#include "kernels/portable/dense.inc.h"
