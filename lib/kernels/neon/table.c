// The table of NEON.
#include "kernels/neon/family.inc.h"
#include "kernels/tables.h"

#include "kernels/portable/all.inc.h"

FAMILY_TABLE(kernels_neon, "NEON", strassen);
