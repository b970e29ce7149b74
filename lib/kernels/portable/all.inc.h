// The portable kernels that every family compiles in one piece, and the tables that
// hold them beside its themes. Included by each family's table.c, which defines either
// FAMILY_LANES (with themes.h) or FAMILY_GEMM.
// All functions are static: every family has its own copy, compiled with its
// own flags. The loops are written so that a compiler vectorises them.
#ifndef ADAM_KERNELS_PORTABLE_ALL_INC_H
#define ADAM_KERNELS_PORTABLE_ALL_INC_H

#include "kernels/portable/activation.inc.h"
#include "kernels/portable/bias.inc.h"
#include "kernels/portable/lcn.inc.h"
#include "kernels/portable/lrn.inc.h"
#include "kernels/portable/merge.inc.h"
#include "kernels/portable/patch.inc.h"
#include "kernels/portable/peak.inc.h"
#include "kernels/portable/pool.inc.h"
#include "kernels/portable/update.inc.h"
#include "kernels/portable/updates.inc.h"
#include "kernels/portable/vector.inc.h"
#ifndef FAMILY_LANES
#include "kernels/portable/conv_columns.inc.h"
#include "kernels/portable/dense_plain.inc.h"
#endif

#define PORTABLE_KERNELS                                                                           \
    .patch = patch, .patch_add = patch_add, .bias_add = bias_add, .bias_sum = bias_sum,            \
    .relu = relu, .relu_back = relu_back, .tanh = hyperbolic_tangent, .tanh_back = tanh_back,      \
    .sigmoid = sigmoid, .sigmoid_back = sigmoid_back, .maxpool = maxpool,                          \
    .maxpool_back = maxpool_back, .avgpool = avgpool, .avgpool_back = avgpool_back,                \
    .l2pool = l2pool, .l2pool_back = l2pool_back, .lrn = lrn, .lrn_back = lrn_back, .lcn = lcn,    \
    .lcn_back = lcn_back, .softmax = softmax, .update = update, .updates = updates,                \
    .merge = merge, .multiply = multiply, .axpy = axpy, .sum_squares = sum_squares,                \
    .finite = all_finite, .largest = largest, .multiply_adds = multiply_adds, .read = read_all,

// A family's table, by its name for people. Those with lanes have a way to predict large dense
// layers (themes.h, for people `way`).
#ifdef FAMILY_LANES
#define FAMILY_TABLE(table, called, way, KEPT)                                                     \
    const struct kernels table = {.name = called,                                                  \
                                  .lanes = FAMILY_LANES,                                           \
                                  .dense_kept_way = way,                                           \
                                  PORTABLE_KERNELS THEME_KERNELS(KERNEL_ENTRY) KEPT(KERNEL_ENTRY)}
#else
#define FAMILY_TABLE(table, called)                                                                \
    const struct kernels table = {.name = called,                                                  \
                                  .gemm = FAMILY_GEMM,                                             \
                                  .conv = conv_columns,                                            \
                                  .conv_back_input = conv_columns_back_input,                      \
                                  .conv_back_weights = conv_columns_back_weights,                  \
                                  .conv_way = conv_columns_way,                                    \
                                  .dense = dense_products,                                         \
                                  .dense_back_input = dense_products_back_input,                   \
                                  .dense_back_weights = dense_products_back_weights,               \
                                  .dense_step = dense_products_step,                               \
                                  .dense_way = dense_products_way,                                 \
                                  .dense_kept_size = dense_products_kept_size,                     \
                                  PORTABLE_KERNELS}
#endif

#endif
