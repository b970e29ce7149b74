// Convolutions of blocks: the table of a family.
#ifndef ADAM_KERNELS_BLOCK_CONV_BLOCKS_INC_H
#define ADAM_KERNELS_BLOCK_CONV_BLOCKS_INC_H

#include "kernels/block/conv_kept.inc.h"
#include "kernels/block/weights.inc.h"
#include "kernels/conv.h"

const struct conv_block_kernels FAMILY(conv_blocks) = {
    .passes = {conv_block, conv_block_back_input, conv_block_back_weights},
    .finish = end_errors,
};

#endif
