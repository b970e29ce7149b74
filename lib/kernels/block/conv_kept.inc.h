// Forward passes of single samples, in blocks of one lane, by weights that are packed already, as
// conv.inc.h packs them: what prediction keeps where Winograd's filtering is not worth its memory.
#ifndef ADAM_KERNELS_BLOCK_CONV_KEPT_INC_H
#define ADAM_KERNELS_BLOCK_CONV_KEPT_INC_H

#include "kernels/block/conv.inc.h"
#include "kernels/conv.h"

// Beyond so many outputs of a map packing takes no time worth the memory.
enum { PACKED_PIXELS = 1 << 10 };

// The places of taps follow the weights.
static size_t packed_places(const struct conv_job *p) {
    return (packed_before(p, 0, job_tiles(p)) + LANES - 1) / LANES * LANES;
}

static size_t packed_size(const struct convolution *conv) {
    struct conv_job p = forward_job(conv, 1, 1, false);
    if (conv->groups > 1 || window_dilated(&conv->window) ||
        window_out_pixels(&conv->window) > PACKED_PIXELS)
        return 0;
    return packed_places(&p) + CONV_FLOATS(size_t) * (conv_taps(conv) + LANES);
}

static void packed_keep(float *kept, const float *weights, const struct convolution *conv) {
    struct conv_job p = forward_job(conv, 1, 1, false);
    struct conv_part part = {.weights = weights, .end = weights + conv_weights(conv)};
    p.packed_taps = (void *)(kept + packed_places(&p));
    for (int t = 0; t < p.end; t++) {
        struct conv_rows tile = job_tile(&p, t);
        pack_tile(kept + packed_before(&p, 0, t), &p, &tile, &part);
    }
}

// A tile of maps, where all have as many.
static int packed_unit(const struct convolution *conv) {
    struct conv_job p = forward_job(conv, 1, 1, false);
    int rows = job_tile(&p, 0).count;
    return conv->maps == rows * LANES * p.end ? rows * LANES : 0;
}

static void packed_forward(float *y, const float *x, const float *kept, const float *biases,
                           bool relu, int blocks, int first, int end,
                           const struct convolution *conv, float *scratch) {
    struct conv_job p = forward_job(conv, blocks, 1, relu);
    if (end - first < conv->maps) {
        p.first = first / packed_unit(conv);
        p.end = end / packed_unit(conv);
    }
    pass_carve(&p, scratch);
    p.kept = kept;
    convolve(&p, y, x, NULL, biases);
}

const struct conv_kept_kernels FAMILY(packed) = {
    .way = "packed",
    .size = packed_size,
    .keep = packed_keep,
    .unit = packed_unit,
    .forward = packed_forward,
};

#endif
