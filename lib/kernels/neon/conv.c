// Convolutions of plain samples.
#include "kernels/neon/family.inc.h"

#include "kernels/dense.h"

#define FAMILY_GEMM FAMILY(dense).gemm
#include "kernels/portable/conv_direct.inc.h"
