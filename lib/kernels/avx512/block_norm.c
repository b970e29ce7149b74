// Norms of blocks.
#include "kernels/avx512/family.inc.h"

#include "kernels/block/batch_norm.inc.h"
#include "kernels/block/norm_blocks.inc.h"
