#include "kernels/ref/gemm.inc.h"

#include <stddef.h>

#include "core/hogwild.h"

// Row by row; the innermost loop runs along a row of C, so that it vectorises
// when B is not transposed and stays a dot product when it is.
HOGWILD void ref_gemm(bool transpose_a, bool transpose_b, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta, float *c,
                      int ldc) {
    size_t a_row = transpose_a ? 1 : (size_t)lda, a_step = transpose_a ? (size_t)lda : 1;
    size_t b_row = transpose_b ? 1 : (size_t)ldb, b_step = transpose_b ? (size_t)ldb : 1;
    for (size_t i = 0; i < (size_t)m; i++) {
        float *row = c + i * (size_t)ldc;
        for (size_t j = 0; j < (size_t)n; j++)
            row[j] = beta == 0 ? 0 : beta * row[j];
        for (size_t l = 0; l < (size_t)k; l++) {
            float scaled = alpha * a[i * a_row + l * a_step];
            for (size_t j = 0; j < (size_t)n; j++)
                row[j] += scaled * b[l * b_row + j * b_step];
        }
    }
}
