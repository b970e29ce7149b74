// Forward passes of single samples by Winograd's minimal filtering (winograd_single.inc.h), with
// kernels that are at the points already: what prediction keeps of weights that do not change.
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_KEPT_INC_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_KEPT_INC_H

#include "kernels/block/winograd_single.inc.h"

static size_t winograd_kept_size(const struct convolution *conv) {
    if (!winograd_kept_fits(conv, LANES))
        return 0;
    return winograd_single_sizes(conv, LANES, CONV_FORWARD).kernels;
}

static void winograd_keep(float *kept, const float *weights, const struct convolution *conv) {
    single_kernels(kept, weights, conv, false);
}

static void winograd_kept_forward(float *y, const float *x, const float *kept, const float *biases,
                                  bool relu, int blocks, int first, int end,
                                  const struct convolution *conv, float *scratch) {
    struct winograd w = winograd_lay(conv, true, CONV_FORWARD, scratch);
    struct winograd_sizes *s = &w.sizes;
    size_t bundle = (size_t)(s->points * s->points) * s->kernel_slice;
    s->maps = (end - first) / LANES;
    single_pass(&w, y + first, x, kept + (size_t)(first / LANES) * bundle,
                (struct winograd_ends){.biases = biases + first, .relu = relu}, blocks);
}

static int winograd_unit(const struct convolution *conv) {
    (void)conv;
    return LANES;
}

const struct conv_kept_kernels FAMILY(winograd_kept) = {
    .way = "winograd",
    .size = winograd_kept_size,
    .keep = winograd_keep,
    .unit = winograd_unit,
    .forward = winograd_kept_forward,
};

#endif
