// The portable kernels compiled for AVX-512, products included.
#include "kernels/tables.h"

#define FAMILY_TABLE kernels_avx512
#define FAMILY_NAME "AVX-512"
#define FAMILY_GEMM gemm
#define FAMILY_LANES 16
#define FAMILY_ROWS 14
#include "kernels/portable/gemm.h"
#include "kernels/portable/all.h"
