// Numbers of maps, as the floats of a pixel of blocks lie: each as often as there are lanes.
#ifndef ADAM_KERNELS_BLOCK_SPREAD_INC_H
#define ADAM_KERNELS_BLOCK_SPREAD_INC_H

#include <stddef.h>
#include <string.h>

#include "core/hogwild.h"

// Biases; NULL: zeros.
HOGWILD static void spread(float *to, const float *from, int maps, int lanes) {
    if (!from)
        memset(to, 0, (size_t)maps * (size_t)lanes * sizeof *to);
    else if (lanes == 1)
        for (int m = 0; m < maps; m++)
            to[m] = from[m];
    else
        for (int m = 0; m < maps; m++)
            for (int i = 0; i < lanes; i++)
                *to++ = from[m];
}

#endif
