// The portable kernels and the table that holds them. Included once by each
// family's table.c, which defines FAMILY_TABLE, FAMILY_NAME, FAMILY_GEMM,
// FAMILY_CONV and FAMILY_DENSE.
// All functions are static: every family has its own copy, compiled with its
// own flags. The loops are written so that a compiler vectorises them.
#include "kernels/portable/activation.h"
#include "kernels/portable/bias.h"
#include "kernels/portable/lcn.h"
#include "kernels/portable/lrn.h"
#include "kernels/portable/peak.h"
#include "kernels/portable/pool.h"
#include "kernels/portable/update.h"
#include "kernels/portable/vector.h"
#include "kernels/portable/window.h"
#ifdef FAMILY_LANES
#include "kernels/block/all.h"
#endif

const struct kernels FAMILY_TABLE = {
    .name = FAMILY_NAME,
    .gemm = FAMILY_GEMM,
    .conv = FAMILY_CONV(),
    .conv_back_input = FAMILY_CONV(_back_input),
    .conv_back_weights = FAMILY_CONV(_back_weights),
    .conv_way = FAMILY_CONV(_way),
    .patch = patch,
    .patch_add = patch_add,
    .bias_add = bias_add,
    .bias_sum = bias_sum,
    .relu = relu,
    .relu_back = relu_back,
    .tanh = hyperbolic_tangent,
    .tanh_back = tanh_back,
    .sigmoid = sigmoid,
    .sigmoid_back = sigmoid_back,
    .maxpool = maxpool,
    .maxpool_back = maxpool_back,
    .avgpool = avgpool,
    .avgpool_back = avgpool_back,
    .l2pool = l2pool,
    .l2pool_back = l2pool_back,
    .lrn = lrn,
    .lrn_back = lrn_back,
    .lcn = lcn,
    .lcn_back = lcn_back,
    .softmax = softmax,
    .update = update,
    .merge = merge,
    .dense = FAMILY_DENSE(),
    .dense_back_input = FAMILY_DENSE(_back_input),
    .dense_back_weights = FAMILY_DENSE(_back_weights),
    .dense_step = FAMILY_DENSE(_step),
    .dense_way = FAMILY_DENSE(_way),
    .multiply = multiply,
    .axpy = axpy,
    .sum_squares = sum_squares,
    .finite = all_finite,
    .largest = largest,
    .multiply_adds = multiply_adds,
    .read = read_all,
#ifdef FAMILY_LANES
    .lanes = FAMILY_LANES,
    .winograd_block_fits = winograd_block_fits,
    .winograd_block = winograd_forward,
    .winograd_block_back_input = winograd_back_input,
    .winograd_block_back_weights = winograd_back_weights,
    .block = block,
    .unblock = unblock,
    .conv_block = conv_block,
    .conv_block_back_input = conv_block_back_input,
    .conv_block_back_weights = conv_block_back_weights,
    .maxpool_block = maxpool_block,
    .maxpool_block_back = maxpool_block_back,
    .avgpool_block = avgpool_block,
    .avgpool_block_back = avgpool_block_back,
    .l2pool_block = l2pool_block,
    .l2pool_block_back = l2pool_block_back,
    .lrn_block = lrn_block,
    .lrn_block_back = lrn_block_back,
    .lcn_block = lcn_block,
    .lcn_block_back = lcn_block_back,
#endif
};
