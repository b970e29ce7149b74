#include "kernels/blas/gemm.inc.h"

#include <cblas.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

typedef __typeof__(cblas_sgemm) sgemm;

// Set once, by blas_load: the library starts threads when it is loaded, which processors
// with kernels of their own do without. It is never unloaded.
static sgemm *_Atomic loaded;

bool blas_load(void) {
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    sgemm *multiply = (sgemm *)dlsym(library, "cblas_sgemm");
    __typeof__(openblas_set_num_threads) *set_threads =
        (__typeof__(openblas_set_num_threads) *)dlsym(library, "openblas_set_num_threads");
    if (!multiply || !set_threads) {
        dlclose(library);
        return false;
    }
    set_threads(1);
    atomic_store(&loaded, multiply);
    // cppcheck-suppress resourceLeak // stays open for the life of the process
    return true;
}

void blas_gemm(bool transpose_a, bool transpose_b, int m, int n, int k, float alpha, const float *a,
               int lda, const float *b, int ldb, float beta, float *c, int ldc) {
    sgemm *multiply = atomic_load_explicit(&loaded, memory_order_relaxed);
    multiply(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
             transpose_b ? CblasTrans : CblasNoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
