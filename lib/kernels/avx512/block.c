// Layout, pools and norms of blocks.
#include "kernels/avx512/family.inc.h"

#include "kernels/block/layout.inc.h"
#include "kernels/block/lcn.inc.h"
#include "kernels/block/lrn.inc.h"
#include "kernels/block/maxpool.inc.h"
#include "kernels/block/pool.inc.h"

BLOCK_KERNELS(KERNEL_EXPORT)
