// The tables of AVX-512, without VNNI and with it.
#include "kernels/avx512/family.inc.h"
#include "kernels/tables.h"

#include "kernels/portable/all.inc.h"

FAMILY_TABLE(kernels_avx512, "AVX-512", strassen);
FAMILY_TABLE(kernels_avx512_vnni, "AVX-512 VNNI", fixed);
