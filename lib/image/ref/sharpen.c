#include "image/portable/sharpen.inc.h"

const struct sharpen_rows sharpen_rows_ref = {sharpen_bytes, sharpen_floats};
