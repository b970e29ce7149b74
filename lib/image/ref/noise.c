#include "image/portable/noise.inc.h"

const struct noise_rows noise_rows_ref = {add_u8, add_f32};
