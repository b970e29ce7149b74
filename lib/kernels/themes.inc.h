// What a family with vector registers compiles theme by theme, each in a file of its own: the
// tables of kernels.h, by the family's name. Of `strassen` and `fixed` a processor uses one.
#ifndef ADAM_KERNELS_THEMES_INC_H
#define ADAM_KERNELS_THEMES_INC_H

extern const struct dense_kernels FAMILY(dense);
extern const struct dense_kept_kernels FAMILY(strassen), FAMILY(fixed);
extern const struct conv_kernels FAMILY(conv);
extern const struct pool_kernels FAMILY(pools);
extern const struct block_kernels FAMILY(blocks);
extern const struct norm_block_kernels FAMILY(norm_blocks);
extern const struct batch_norm_kernels FAMILY(batch_norm_blocks);
extern const struct conv_block_kernels FAMILY(conv_blocks);
extern const struct winograd_kernels FAMILY(winograd);
extern const struct conv_kept_kernels FAMILY(winograd_kept), FAMILY(packed);

#endif
