// Layout and pools of blocks.
#include "kernels/avx2/family.inc.h"

#include "kernels/block/blocks.inc.h"
