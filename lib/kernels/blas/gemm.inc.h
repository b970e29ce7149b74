#ifndef ADAM_KERNELS_BLAS_GEMM_INC_H
#define ADAM_KERNELS_BLAS_GEMM_INC_H

#include <stdbool.h>

// Loads OpenBLAS, with one thread a call: each thread of ours makes its own calls. False: it is
// not installed. Any thread may call it, more than once.
bool blas_load(void);

// kernels.gemm by OpenBLAS. Only after blas_load.
void blas_gemm(bool transpose_a, bool transpose_b, int m, int n, int k, float alpha, const float *a,
               int lda, const float *b, int ldb, float beta, float *c, int ldc);

#endif
