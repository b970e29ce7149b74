// What windows and convolutions look like.
#ifndef ADAM_KERNELS_SHAPES_H
#define ADAM_KERNELS_SHAPES_H

#include <stdint.h>

// A window that slides over a picture: kernel, stride and padding of
// convolutions and pools. Output pixel (y, x) sees input rows
// y * stride_h - pad_h ... + kernel_h - 1, clipped to the picture. The taps of a dilated
// convolution leave out skip_h rows and skip_w columns between them: only those ways of plain
// samples take it that say so.
struct window {
    int c, h, w;      // input
    int out_h, out_w; // output
    int kernel_h, kernel_w;
    int stride_h, stride_w;
    int pad_h, pad_w;
    int skip_h, skip_w;
};

// The taps of all windows over one channel that fall on a pixel, not on padding: the
// multiply-adds that a convolution cannot do without, for each map and channel.
uint64_t window_taps(const struct window *window);

struct convolution {
    struct window window;
    int maps, groups; // both c and maps are multiples of groups
};

#endif
