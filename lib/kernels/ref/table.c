// Plain C throughout: what every other family is held against.
#include "kernels/ref/gemm.h"
#include "kernels/tables.h"

#define FAMILY_TABLE kernels_ref
#define FAMILY_NAME "ref"
#define FAMILY_GEMM ref_gemm
#define FAMILY_CONV(pass) conv_columns##pass
#define FAMILY_DENSE(pass) dense_products##pass
#include "kernels/portable/conv_columns.h"
#include "kernels/portable/dense_plain.h"

#include "kernels/portable/all.h"
