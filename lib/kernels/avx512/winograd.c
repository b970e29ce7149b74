// Convolutions of blocks by Winograd's minimal filtering: forward, and the error
// gradients of inputs.
#include "kernels/avx512/family.inc.h"

#include "kernels/block/winograd_table.inc.h"
