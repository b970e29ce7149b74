// The table of pools of plain samples.
#ifndef ADAM_KERNELS_PORTABLE_POOLS_INC_H
#define ADAM_KERNELS_PORTABLE_POOLS_INC_H

#include "kernels/pools.h"
#include "kernels/portable/pool.inc.h"

#ifdef FAMILY_LANES
#define POOLS const struct pool_kernels FAMILY(pools)
#else
#define POOLS static const struct pool_kernels pools
#endif

POOLS = {
    .maxpool = maxpool,
    .maxpool_back = maxpool_back,
    .avgpool = avgpool,
    .avgpool_back = avgpool_back,
    .l2pool = l2pool,
    .l2pool_back = l2pool_back,
};

#endif
