// The smaller and the larger of two numbers.
#ifndef ADAM_CORE_LEAST_H
#define ADAM_CORE_LEAST_H

#include <stddef.h>

static inline int least_int(int a, int b) {
    return a < b ? a : b;
}

static inline int most_int(int a, int b) {
    return a > b ? a : b;
}

static inline size_t least_size(size_t a, size_t b) {
    return a < b ? a : b;
}

static inline size_t most_size(size_t a, size_t b) {
    return a > b ? a : b;
}

#endif
