// Numbers as files hold them: 1 to 8 bytes, either byte order, signed or not.
#ifndef ADAM_SAMPLE_ELEMENT_H
#define ADAM_SAMPLE_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct element {
    char kind; // 'u' unsigned, 'i' signed, 'f' IEEE 754 floating point
    int size;  // bytes: 1, 2, 4 or 8; of 'f' 2, 4 or 8
    bool big;  // big-endian
};

// n numbers, nearest float each.
void element_floats(float *to, const void *from, size_t n, struct element element);
// The other way: IEEE 754 single precision, in either byte order.
void element_singles(void *to, const float *from, size_t n, bool big);
// One whole number; false for floating point and what does not fit.
bool element_integer(int64_t *to, const void *from, struct element element);

#endif
