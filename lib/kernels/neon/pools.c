// Pools of plain samples.
#include "kernels/neon/family.inc.h"

#include "kernels/portable/pools.inc.h"
