#include "image/resize_kernels.h"

static int32_t clamp(int32_t value, int32_t low, int32_t high) {
    return value < low ? low : value > high ? high : value;
}

static void rows_u8(int16_t *to, const uint8_t *from, size_t stride, const int16_t *weights,
                    int taps, int precision, size_t n) {
    const int shift = precision - RESIZE_FRACTION;
    for (size_t i = 0; i < n; i++) {
        int32_t sum = 1 << (shift - 1);
        for (int t = 0; t < taps; t++)
            sum += weights[t] * from[(size_t)t * stride + i];
        to[i] = (int16_t)clamp(sum >> shift, INT16_MIN, INT16_MAX);
    }
}

static void pixels_u8(uint8_t *to, const int16_t *from, const struct resize_axis *axis,
                      int channels) {
    const int shift = axis->precision + RESIZE_FRACTION;
    for (int i = 0; i < axis->count; i++) {
        const int16_t *weights = axis->fixed + (size_t)i * (size_t)axis->stride;
        for (int c = 0; c < channels; c++) {
            const int16_t *sample = from + (size_t)axis->first[i] * (size_t)channels + c;
            int32_t sum = 1 << (shift - 1);
            for (int t = 0; t < axis->taps[i]; t++, sample += channels)
                sum += weights[t] * *sample;
            *to++ = (uint8_t)clamp(sum >> shift, 0, 255);
        }
    }
}

static void rows_f32(float *to, const float *from, size_t stride, const float *weights, int taps,
                     size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = weights[0] * from[i];
    for (int t = 1; t < taps; t++)
        for (size_t i = 0; i < n; i++)
            to[i] += weights[t] * from[(size_t)t * stride + i];
}

static void pixels_f32(float *to, const float *from, const struct resize_axis *axis, int channels) {
    for (int i = 0; i < axis->count; i++) {
        const float *weights = axis->weights + (size_t)i * (size_t)axis->stride;
        for (int c = 0; c < channels; c++) {
            const float *sample = from + (size_t)axis->first[i] * (size_t)channels + c;
            float sum = 0;
            for (int t = 0; t < axis->taps[i]; t++, sample += channels)
                sum += weights[t] * *sample;
            *to++ = sum;
        }
    }
}

const struct resize_kernels resize_ref = {rows_u8, pixels_u8, rows_f32, pixels_f32};
