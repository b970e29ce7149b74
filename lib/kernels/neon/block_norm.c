// Norms of blocks.
#include "kernels/neon/family.inc.h"

#include "kernels/block/batch_norm.inc.h"
#include "kernels/block/norm_blocks.inc.h"
