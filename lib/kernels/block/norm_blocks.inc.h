// Norms of blocks: the table of a family.
#ifndef ADAM_KERNELS_BLOCK_NORM_BLOCKS_INC_H
#define ADAM_KERNELS_BLOCK_NORM_BLOCKS_INC_H

#include "kernels/block/group_norm.inc.h"
#include "kernels/block/lcn.inc.h"
#include "kernels/block/lrn.inc.h"
#include "kernels/blocks.h"

const struct norm_block_kernels FAMILY(norm_blocks) = {
    .lrn = lrn_block,
    .lrn_back = lrn_block_back,
    .lcn = lcn_block,
    .lcn_back = lcn_block_back,
    .group_norm = group_norm_block,
    .group_norm_back = group_norm_block_back,
};

#endif
