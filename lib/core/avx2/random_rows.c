#include "core/portable/random_rows.inc.h"

const struct random_rows random_rows_avx2 = {words, normals};
