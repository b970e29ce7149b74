// The portable kernels that every family compiles in one piece, and the tables that
// hold them beside its themes. Included by each family's table.c, which defines either
// FAMILY_LANES (with themes.inc.h) or FAMILY_GEMM.
// All functions are static: every family has its own copy, compiled with its
// own flags. The loops are written so that a compiler vectorises them.
#ifndef ADAM_KERNELS_PORTABLE_ALL_INC_H
#define ADAM_KERNELS_PORTABLE_ALL_INC_H

#include "kernels/portable/activation.inc.h"
#include "kernels/portable/batch_norm.inc.h"
#include "kernels/portable/bias.inc.h"
#include "kernels/portable/group_norm.inc.h"
#include "kernels/portable/lcn.inc.h"
#include "kernels/portable/lrn.inc.h"
#include "kernels/portable/merge.inc.h"
#include "kernels/portable/peak.inc.h"
#include "kernels/portable/update.inc.h"
#include "kernels/portable/updates.inc.h"
#include "kernels/portable/vector.inc.h"
#ifndef FAMILY_LANES
#include "kernels/portable/conv_columns.inc.h"
#include "kernels/portable/dense_plain.inc.h"
#include "kernels/portable/patch.inc.h"
#include "kernels/portable/pools.inc.h"
#endif

#define PORTABLE_KERNELS                                                                           \
    .bias_add = bias_add, .bias_sum = bias_sum, .acts = ACTIVATIONS, .lrn = lrn,                   \
    .batch_norm = &batch_norm_plain, .batch_maps = &batch_maps, .lrn_back = lrn_back, .lcn = lcn,  \
    .lcn_back = lcn_back, .group_norm = group_norm, .group_norm_back = group_norm_back,            \
    .softmax = softmax, .update = update, .updates = updates, .merge = merge, .average = average,  \
    .add = add, .add_relu = add_relu, .add_above = add_above, .multiply = multiply, .axpy = axpy,  \
    .sum_squares = sum_squares, .finite = all_finite, .largest = largest,                          \
    .multiply_adds = multiply_adds, .read = read_all,

// A family's table, by its name for people. Those with lanes have a way to predict large dense
// layers (themes.inc.h).
#ifdef FAMILY_LANES
#define FAMILY_TABLE(table, called, way)                                                           \
    const struct kernels table = {.name = called,                                                  \
                                  .lanes = FAMILY_LANES,                                           \
                                  .dense = &FAMILY(dense),                                         \
                                  .kept = &FAMILY(way),                                            \
                                  .conv = &FAMILY(conv),                                           \
                                  .pools = &FAMILY(pools),                                         \
                                  .blocks = &FAMILY(blocks),                                       \
                                  .norm_blocks = &FAMILY(norm_blocks),                             \
                                  .batch_norm_blocks = &FAMILY(batch_norm_blocks),                 \
                                  .conv_blocks = &FAMILY(conv_blocks),                             \
                                  .winograd = &FAMILY(winograd),                                   \
                                  .winograd_kept = &FAMILY(winograd_kept),                         \
                                  .packed = &FAMILY(packed),                                       \
                                  PORTABLE_KERNELS}
#else
static const struct conv_kernels conv_by_columns = {
    .forward = conv_columns,
    .back_input = conv_columns_back_input,
    .back_weights = conv_columns_back_weights,
    .patch = patch,
    .patch_add = patch_add,
    .way = conv_columns_way,
};

#define FAMILY_TABLE(table, called)                                                                \
    const struct kernels table = {.name = called,                                                  \
                                  .dense = &dense_plain,                                           \
                                  .kept = &dense_plain_kept,                                       \
                                  .conv = &conv_by_columns,                                        \
                                  .pools = &pools,                                                 \
                                  PORTABLE_KERNELS}
#endif

#endif
