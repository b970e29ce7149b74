// Plain C throughout: what every other family is held against.
#include "kernels/ref/gemm.inc.h"
#include "kernels/tables.h"

#define FAMILY_GEMM ref_gemm
#include "kernels/portable/all.inc.h"

FAMILY_TABLE(kernels_ref, "ref");
