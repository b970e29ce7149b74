// What a thread has changed in its copy of the weights, and what others have.
#ifndef ADAM_KERNELS_PORTABLE_MERGE_INC_H
#define ADAM_KERNELS_PORTABLE_MERGE_INC_H

#include <stddef.h>

#include "core/hogwild.h"

HOGWILD static void merge(float *shared, float *copy, float *begin, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float sum = shared[i] + (copy[i] - begin[i]);
        shared[i] = copy[i] = begin[i] = sum;
    }
}

#endif
