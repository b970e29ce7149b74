// The portable kernels compiled for AVX-512.
#include "kernels/blas/gemm.h"
#include "kernels/tables.h"

#define FAMILY_TABLE kernels_avx512
#define FAMILY_NAME "AVX-512, OpenBLAS"
#define FAMILY_GEMM blas_gemm
#include "kernels/portable/all.h"
