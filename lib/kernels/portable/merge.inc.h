// What a thread has changed in its copy of the weights, and what others have; and their average
// over time.
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

HOGWILD static void average(float *average, const float *w, size_t n, float share) {
    for (size_t i = 0; i < n; i++)
        average[i] += share * (w[i] - average[i]);
}

#endif
