// Where windows lie along one side of a picture. Inside lib/kernels and lib/model.
#ifndef ADAM_KERNELS_TAPS_H
#define ADAM_KERNELS_TAPS_H

// The part [first, last) of the output positions at which a tap falls on the
// picture, not on padding: 0 <= o * stride + shift < size.
static inline void tap_range(int shift, int stride, int size, int out, int *first, int *last) {
    int begin = shift < 0 ? (-shift + stride - 1) / stride : 0;
    int end = size > shift ? (size - shift + stride - 1) / stride : 0;
    *first = begin < out ? begin : out;
    *last = end < out ? end : out;
    if (*last < *first)
        *last = *first;
}

// The windows [first, last) that see row or column `at`.
struct seen {
    int first, last;
};

static inline struct seen windows_seeing(int at, int kernel, int stride, int pad, int out) {
    int least = at + pad - kernel + 1; // where a window that reaches it begins
    int first = least > 0 ? (least + stride - 1) / stride : 0, last = (at + pad) / stride + 1;
    last = last < out ? last : out;
    return (struct seen){first < last ? first : last, last};
}

// The same for the next row or column, `at`, without a division.
static inline void seen_advance(struct seen *s, int at, int kernel, int stride, int pad, int out) {
    while (s->last < out && s->last * stride - pad <= at)
        s->last++;
    while (s->first < s->last && s->first * stride - pad + kernel <= at)
        s->first++;
}

#endif
