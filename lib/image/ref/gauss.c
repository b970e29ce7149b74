#include "image/portable/gauss.inc.h"

void gauss_filter_ref(float *field, float *room, int width, int height, int channels,
                      const float *weight, int radius) {
    filter(field, room, width, height, channels, weight, radius);
}
