// The table of AVX-512.
#include "kernels/avx512/family.h"
#include "kernels/tables.h"

#define FAMILY_TABLE kernels_avx512
#define FAMILY_NAME "AVX-512"
#include "kernels/portable/all.h"
