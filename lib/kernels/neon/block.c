// Layout and pools of blocks.
#include "kernels/neon/family.inc.h"

#include "kernels/block/blocks.inc.h"
