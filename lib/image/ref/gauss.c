#include "image/portable/gauss.inc.h"

void gauss_filter_ref(float *field, float *room, int width, int height, const float *weight,
                      int radius) {
    filter(field, room, width, height, weight, radius);
}
