// Dense layers of few samples.
#include "kernels/avx512/family.inc.h"

#include "kernels/portable/dense_stream.inc.h"
