// The functions of a family with vector registers, theme by theme: each theme is
// compiled on its own, in the family's folder, and gives its functions the family's
// name, with which the family's tables find them.
//
// X(member of struct kernels, function that the theme's headers define). The family
// defines FAMILY(function), the name. Of STRASSEN_KERNELS and FIXED_KERNELS a table has
// one.
#ifndef ADAM_KERNELS_THEMES_H
#define ADAM_KERNELS_THEMES_H

#include "kernels/kernels.h"

#define DENSE_KERNELS(X)                                                                           \
    X(gemm, gemm)                                                                                  \
    X(dense, dense)                                                                                \
    X(dense_back_input, dense_back_input)                                                          \
    X(dense_back_weights, dense_back_weights)                                                      \
    X(dense_step, dense_step)                                                                      \
    X(dense_way, dense_way)
#define STRASSEN_KERNELS(X)                                                                        \
    X(dense_kept_size, strassen_kept_size)                                                         \
    X(dense_keep, strassen_keep)                                                                   \
    X(dense_by_kept, strassen_by_kept)
#define FIXED_KERNELS(X)                                                                           \
    X(dense_kept_size, fixed_kept_size)                                                            \
    X(dense_keep, fixed_keep)                                                                      \
    X(dense_by_kept, fixed_by_kept)
#define CONV_KERNELS(X)                                                                            \
    X(conv, conv_direct)                                                                           \
    X(conv_back_input, conv_direct_back_input)                                                     \
    X(conv_back_weights, conv_direct_back_weights)                                                 \
    X(conv_way, conv_direct_way)
#define BLOCK_KERNELS(X)                                                                           \
    X(block, block)                                                                                \
    X(unblock, unblock)                                                                            \
    X(maxpool_block, maxpool_block)                                                                \
    X(maxpool_block_back, maxpool_block_back)                                                      \
    X(avgpool_block, avgpool_block)                                                                \
    X(avgpool_block_back, avgpool_block_back)                                                      \
    X(l2pool_block, l2pool_block)                                                                  \
    X(l2pool_block_back, l2pool_block_back)                                                        \
    X(lrn_block, lrn_block)                                                                        \
    X(lrn_block_back, lrn_block_back)                                                              \
    X(lcn_block, lcn_block)                                                                        \
    X(lcn_block_back, lcn_block_back)
#define BLOCK_CONV_KERNELS(X)                                                                      \
    X(conv_block, conv_block)                                                                      \
    X(conv_block_back_input, conv_block_back_input)
#define BLOCK_WEIGHTS_KERNELS(X) X(conv_block_back_weights, conv_block_back_weights)
#define WINOGRAD_KERNELS(X)                                                                        \
    X(winograd_block_fits, winograd_block_fits)                                                    \
    X(winograd_block, winograd_forward)                                                            \
    X(winograd_block_back_input, winograd_back_input)                                              \
    X(winograd_block_back_weights, winograd_back_weights)
#define THEME_KERNELS(X)                                                                           \
    DENSE_KERNELS(X)                                                                               \
    CONV_KERNELS(X)                                                                                \
    BLOCK_KERNELS(X)                                                                               \
    BLOCK_CONV_KERNELS(X)                                                                          \
    BLOCK_WEIGHTS_KERNELS(X)                                                                       \
    WINOGRAD_KERNELS(X)

#define KERNEL_DECLARE(member, function)                                                           \
    extern __typeof__(*((struct kernels *)0)->member) FAMILY(function);
#define KERNEL_EXPORT(member, function)                                                            \
    extern __typeof__(function) FAMILY(function) __attribute__((alias(#function)));
#define KERNEL_ENTRY(member, function) .member = FAMILY(function),

#endif
