// The functions of Winograd's minimal filtering for each size of tile.
#include "kernels/neon/family.inc.h"

#include "kernels/block/winograd_functions.inc.h"
