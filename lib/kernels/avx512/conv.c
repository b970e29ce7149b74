// Convolutions of plain samples.
#include "kernels/avx512/family.inc.h"
#include "kernels/dense.h"

#define FAMILY_GEMM FAMILY(dense).gemm
#include "kernels/portable/conv_direct.inc.h"
