// Groups whose maps and channels leave most of a vector empty pass as one, whose other weights
// are zeros (conv_merge in conv_sizes.h): as many multiply-adds, but in larger tiles, and the
// pixels are listed once for all of them.
//
// Learned: one sample, AVX-512, kernels of 3, milliseconds forward and back: 128 maps of 28 x 28
// in groups of 4 0.239, 0.574 -> 0.161, 0.341, of 14 x 14 at a stride of 2 in groups of 2 0.103,
// 0.434 -> 0.046, 0.114.
#ifndef ADAM_KERNELS_BLOCK_GROUPS_INC_H
#define ADAM_KERNELS_BLOCK_GROUPS_INC_H

#include "core/hogwild.h"
#include "kernels/conv_sizes.h"
#include "kernels/portable/carve.inc.h"
#include "kernels/portable/lanes.inc.h"

// maps x (merge * channels of a group) x taps, of maps x channels x taps.
HOGWILD static void merge_weights(float *to, const float *weights, const struct convolution *conv,
                                  int merge) {
    size_t own = (size_t)(conv->window.c / conv->groups) * conv_taps(conv);
    size_t all = conv_weights(conv) * (size_t)merge;
    for (size_t i = 0; i < all; i++)
        to[i] = 0;
    for (int m = 0; m < conv->maps; m++)
        for (size_t i = 0; i < own; i++)
            to[conv_merged_place(conv, merge, m) + i] = weights[(size_t)m * own + i];
}

struct merged {
    struct convolution conv;
    const float *weights;
};

// From the scratch, where any groups are merged.
static struct merged merge_groups(const struct convolution *conv, int lanes, const float *weights,
                                  float **scratch) {
    int merge = conv_merge(conv, lanes, LANES);
    struct merged merged = {conv_merged(conv, merge), weights};
    if (merge > 1) {
        float *to = carve(scratch, conv_weights(&merged.conv));
        merge_weights(to, weights, conv, merge);
        merged.weights = to;
    }
    return merged;
}

#endif
