// The loops of resizing. The reference in ref/ defines every result; the other
// families give the same bits. Private to lib/image.
#ifndef ADAM_IMAGE_RESIZE_KERNELS_H
#define ADAM_IMAGE_RESIZE_KERNELS_H

#include <stddef.h>
#include <stdint.h>

// Between the passes an 8-bit sample is an int16_t with this many bits of
// fraction, which leaves room for the overshoot of Lanczos.
#define RESIZE_FRACTION 6
// Weights of one result are padded with zeros to a multiple of this.
#define RESIZE_PAD 8

// How each result along one axis is a weighted sum of `taps` source samples in
// a row. Weights are floats, and 16-bit integers that add up to 1 << precision.
struct resize_axis {
    int count;  // results
    int stride; // weights from one result to the next
    int *first; // per result: its first source sample
    int *taps;  // per result: how many
    int most;   // the most that any result has
    float *weights;
    int16_t *fixed;
    int precision;
};

struct resize_kernels {
    // Sum of `taps` rows of n samples, `stride` apart, into one.
    void (*rows_u8)(int16_t *to, const uint8_t *from, size_t stride, const int16_t *weights,
                    int taps, int precision, size_t n);
    // A row of pixels to axis->count pixels. `stride` pixels behind the last one
    // are readable and zero, so that each result may take as many taps as `most`.
    void (*pixels_u8)(uint8_t *to, const int16_t *from, const struct resize_axis *axis,
                      int channels);
    void (*rows_f32)(float *to, const float *from, size_t stride, const float *weights, int taps,
                     size_t n);
    void (*pixels_f32)(float *to, const float *from, const struct resize_axis *axis, int channels);
};

extern const struct resize_kernels resize_ref, resize_avx2, resize_avx512;

#endif
