// Dense layers of few samples.
#include "kernels/neon/family.inc.h"

#include "kernels/portable/dense_stream.inc.h"
