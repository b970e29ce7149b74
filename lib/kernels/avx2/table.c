// The tables of AVX2 and FMA, without AVX-VNNI and with it.
#include "kernels/avx2/family.inc.h"
#include "kernels/tables.h"

#include "kernels/portable/all.inc.h"

FAMILY_TABLE(kernels_avx2, "AVX2", strassen);
FAMILY_TABLE(kernels_avx2_vnni, "AVX2 VNNI", fixed);
