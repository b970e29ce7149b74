#include "image/portable/sharpen.inc.h"

const struct sharpen_rows sharpen_rows_avx2 = {sharpen_bytes, sharpen_floats};
