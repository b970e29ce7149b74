#ifndef ADAM_KERNELS_BLAS_GEMM_H
#define ADAM_KERNELS_BLAS_GEMM_H

#include <stdbool.h>

// kernels.gemm by OpenBLAS.
void blas_gemm(bool transpose_a, bool transpose_b, int m, int n, int k, float alpha, const float *a,
               int lda, const float *b, int ldb, float beta, float *c, int ldc);

// "more threads, slower" is what users report of a threaded BLAS under a
// threaded program; here each thread of ours makes its own calls.
void blas_single_thread(void);

#endif
