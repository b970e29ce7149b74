// Convolutions of blocks by Winograd's minimal filtering: forward, and the error
// gradients of inputs.
#include "kernels/neon/family.inc.h"

#include "kernels/block/winograd_table.inc.h"
