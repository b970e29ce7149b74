// The tables that table.c chooses from. Each is made by including the portable
// kernels (portable/all.inc.h) in a file of its family's folder, so that the same C
// is compiled for each family, and naming the functions that the family does
// better.
#ifndef ADAM_KERNELS_TABLES_H
#define ADAM_KERNELS_TABLES_H

#include "kernels/kernels.h"

extern const struct kernels kernels_ref;         // plain C, reference products
extern const struct kernels kernels_blas;        // plain C and OpenBLAS
extern const struct kernels kernels_neon;        // the same C for NEON
extern const struct kernels kernels_avx2;        // the same C for AVX2
extern const struct kernels kernels_avx2_vnni;   // and products of bytes for prediction
extern const struct kernels kernels_avx512;      // the same C for AVX-512
extern const struct kernels kernels_avx512_vnni; // and products of bytes for prediction

#endif
