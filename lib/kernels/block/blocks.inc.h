// Layout and pools of blocks: the table of a family.
#ifndef ADAM_KERNELS_BLOCK_BLOCKS_INC_H
#define ADAM_KERNELS_BLOCK_BLOCKS_INC_H

#include "kernels/block/layout.inc.h"
#include "kernels/block/maxpool.inc.h"
#include "kernels/block/pool.inc.h"
#include "kernels/blocks.h"

const struct block_kernels FAMILY(blocks) = {
    .block = block,
    .unblock = unblock,
    .maxpool = maxpool_block,
    .maxpool_back = maxpool_block_back,
    .avgpool = avgpool_block,
    .avgpool_back = avgpool_block_back,
    .l2pool = l2pool_block,
    .l2pool_back = l2pool_block_back,
};

#endif
