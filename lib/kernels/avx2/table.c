// The portable kernels compiled for AVX2 and FMA.
#include "kernels/blas/gemm.h"
#include "kernels/tables.h"

#define FAMILY_TABLE kernels_avx2
#define FAMILY_NAME "AVX2, OpenBLAS"
#define FAMILY_GEMM blas_gemm
#define FAMILY_CONV(pass) conv_columns##pass
#include "kernels/portable/conv_columns.h"

#include "kernels/portable/all.h"
