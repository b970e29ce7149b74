// Groups whose maps and channels leave most of a vector empty are merged into one (conv_merge in
// conv_sizes.h), with zeros for the weights between them: as many multiply-adds, but in larger
// tiles, and the pixels are listed once for all of them.
#ifndef ADAM_KERNELS_BLOCK_GROUPS_INC_H
#define ADAM_KERNELS_BLOCK_GROUPS_INC_H

#include "core/hogwild.h"
#include "kernels/conv_sizes.h"
#include "kernels/portable/carve.inc.h"
#include "kernels/portable/lanes.inc.h"

// Copies weights, maps x channels x taps, to maps x (merge * channels) x taps.
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

// Takes the merged weights from the scratch, if any groups are merged.
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
