// Numbers of maps, as the floats of a pixel of blocks lie: each as often as there are lanes.
#ifndef ADAM_KERNELS_BLOCK_SPREAD_INC_H
#define ADAM_KERNELS_BLOCK_SPREAD_INC_H

#include <stddef.h>

#include "core/hogwild.h"

// Biases, or weights of one tap, `step` floats from map to map; NULL: zeros.
HOGWILD static void spread(float *to, const float *from, size_t step, int maps, int lanes) {
    for (int m = 0; m < maps; m++)
        for (int i = 0; i < lanes; i++)
            *to++ = from ? from[(size_t)m * step] : 0;
}

#endif
