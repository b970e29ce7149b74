#include "image/portable/noise.inc.h"

const struct noise_rows noise_rows_avx2 = {add_u8, add_f32};
