// Plain C for any machine, with the products of OpenBLAS.
#include "kernels/blas/gemm.h"
#include "kernels/tables.h"

#define FAMILY_TABLE kernels_blas
#define FAMILY_NAME "portable C, OpenBLAS"
#define FAMILY_GEMM blas_gemm
#define FAMILY_CONV(pass) conv_columns##pass
#define FAMILY_DENSE(pass) dense_products##pass
#include "kernels/portable/conv_columns.h"
#include "kernels/portable/dense_plain.h"

#include "kernels/portable/all.h"
