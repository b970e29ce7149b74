// Which table this machine gets.
#include <stdlib.h>

#include "kernels/blas/gemm.inc.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

const struct kernels *kernels_of(enum cpu_level level) {
    if (level > cpu_level() || !cpu_has(level))
        return NULL;
    switch (level) {
#if defined(__x86_64__)
    case CPU_AVX512_VNNI:
        return &kernels_avx512_vnni;
    case CPU_AVX512:
        return &kernels_avx512;
    case CPU_AVX2_VNNI:
        return &kernels_avx2_vnni;
    case CPU_AVX2:
        return &kernels_avx2;
#elif defined(__aarch64__)
    case CPU_NEON:
        return &kernels_neon;
#endif
    default:
        return &kernels_ref;
    }
}

const struct kernels *kernels_best(void) {
    // A machine without these still has an OpenBLAS made for it; plain C products
    // are for those who ask for them, or do not have it.
    const struct kernels *kernels = kernels_of(cpu_level());
    bool wanted = kernels == &kernels_ref && !getenv("ADAM_CPU");
    return wanted && blas_load() ? &kernels_blas : kernels;
}
