// Layout, pools and norms of blocks.
#include "kernels/avx512/family.h"

#include "kernels/block/layout.h"
#include "kernels/block/lcn.h"
#include "kernels/block/lrn.h"
#include "kernels/block/maxpool.h"
#include "kernels/block/pool.h"

BLOCK_KERNELS(KERNEL_EXPORT)
