// The gradient of the weights by Winograd's minimal filtering.
#include "kernels/avx512/family.inc.h"

#include "kernels/block/winograd_single_gradient.inc.h"
