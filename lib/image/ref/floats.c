#include "image/portable/floats.inc.h"

const struct floats_rows floats_rows_ref = {linear_u8, linear_f32, split_u8, split_f32};
