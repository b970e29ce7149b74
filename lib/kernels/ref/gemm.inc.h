#ifndef ADAM_KERNELS_REF_GEMM_INC_H
#define ADAM_KERNELS_REF_GEMM_INC_H

#include <stdbool.h>

// kernels.gemm in plain C: what the others are measured against.
void ref_gemm(bool transpose_a, bool transpose_b, int m, int n, int k, float alpha, const float *a,
              int lda, const float *b, int ldb, float beta, float *c, int ldc);

#endif
