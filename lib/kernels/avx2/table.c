// The table of AVX2 and FMA.
#include "kernels/avx2/family.h"
#include "kernels/tables.h"

#define FAMILY_TABLE kernels_avx2
#define FAMILY_NAME "AVX2"
#include "kernels/portable/all.h"
