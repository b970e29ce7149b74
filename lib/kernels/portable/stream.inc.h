// Dense layers of few samples (dense_stream.inc.h, which a family compiles apart), as the other
// ways of dense layers see them.
#ifndef ADAM_KERNELS_PORTABLE_STREAM_INC_H
#define ADAM_KERNELS_PORTABLE_STREAM_INC_H

#include "kernels/dense.h"
#include "kernels/portable/lanes.inc.h"

// Samples at a time, whose sums fit the registers.
enum { STREAM_MOST = FAMILY_REGISTERS == 32 ? 6 : 3 };

// As dense_kernels.forward.
void FAMILY(dense_stream)(float *y, const float *x, const float *weights, const float *biases,
                          int n, int units, int inputs, int first);

enum work {
    WORK_ERRORS,   // dx +=
    WORK_GRADIENT, // to =
    WORK_STEP,     // both: to, which is w, +=
};

// A backward pass over weights that it reads, writes, or both. With update rules other than sgd,
// gradients of single rows go through a buffer.
struct stream_back {
    const struct dense_errors *e;
    enum work work;
    const float *weights;
    float *to, *state;
    const struct update *update;
};

void FAMILY(stream_back)(const struct stream_back *b);

#endif
