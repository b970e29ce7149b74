// Dense layers in fixed point: on processors with VNNI only.
#include "kernels/avx512/family.inc.h"

#include "kernels/portable/dense_fixed.inc.h"
