#include "kernels/blas/gemm.h"

#include <cblas.h>

void blas_single_thread(void) {
    openblas_set_num_threads(1);
}

void blas_gemm(bool transpose_a, bool transpose_b, int m, int n, int k, float alpha, const float *a,
               int lda, const float *b, int ldb, float beta, float *c, int ldc) {
    cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                transpose_b ? CblasTrans : CblasNoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c,
                ldc);
}
