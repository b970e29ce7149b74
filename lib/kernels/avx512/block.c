// Layout and pools of blocks.
#include "kernels/avx512/family.inc.h"

#include "kernels/block/blocks.inc.h"
