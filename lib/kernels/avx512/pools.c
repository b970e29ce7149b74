// Pools of plain samples.
#include "kernels/avx512/family.inc.h"

#include "kernels/portable/pools.inc.h"
