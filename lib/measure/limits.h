// What one core of this machine can do at most, measured in a fraction of a second:
// what the times of layers are held against.
#ifndef ADAM_MEASURE_LIMITS_H
#define ADAM_MEASURE_LIMITS_H

#include <stddef.h>

struct kernels;

struct limits {
    double flops; // FLOP/s: multiply-adds in registers, two FLOPs each
    double bytes; // B/s: reading `count` floats again and again
};

// Both are the best of several trials, of processor time. `floats` stands for the
// weights of a net: a net that fits a cache is read as fast as that cache.
struct limits limits_measure(const struct kernels *kernels, const float *floats, size_t count);

#endif
