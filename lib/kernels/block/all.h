// The kernels for blocks (kernels.h), for families with vectors of FAMILY_LANES.
#include "kernels/block/conv.h"
#include "kernels/block/layout.h"
#include "kernels/block/lcn.h"
#include "kernels/block/lrn.h"
#include "kernels/block/pool.h"
#include "kernels/block/weights.h"
#include "kernels/block/winograd.h"
