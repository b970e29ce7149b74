// Norms of blocks.
#include "kernels/avx2/family.inc.h"

#include "kernels/block/batch_norm.inc.h"
#include "kernels/block/norm_blocks.inc.h"
