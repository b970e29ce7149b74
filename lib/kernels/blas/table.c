// Plain C for any machine, with the products of OpenBLAS.
#include "kernels/blas/gemm.inc.h"
#include "kernels/tables.h"

#define FAMILY_GEMM blas_gemm
#include "kernels/portable/all.inc.h"

FAMILY_TABLE(kernels_blas, "portable C, OpenBLAS");
