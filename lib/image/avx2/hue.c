#include "image/portable/hue.inc.h"

void hue_row_avx2(float *r, float *g, float *b, float turn, int n) {
    turn_hues(r, g, b, turn, n);
}
