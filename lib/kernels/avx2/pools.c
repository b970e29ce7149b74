// Pools of plain samples.
#include "kernels/avx2/family.inc.h"

#include "kernels/portable/pools.inc.h"
