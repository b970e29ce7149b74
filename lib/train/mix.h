// Mini-batches whose samples are mixed with each other, and their labels with them:
//
//   mixup   "x = l x_i + (1 - l) x_j,  y = l y_i + (1 - l) y_j", l from Beta(alpha, alpha)
//           (Zhang et al. 2017, "mixup: Beyond Empirical Risk Minimization")
//   cutmix  a rectangle of x_i comes from x_j, and that share of the label too
//           (Yun et al. 2019, "CutMix", algorithm A1)
//
// Samples make pairs from both ends of the mini-batch, i and n - 1 - i, and mix with each other,
// each pair by numbers of its own. Order is random, and so are pairs. What a pair draws depends
// on the seed and on its two samples in their epoch, on nothing else.
#ifndef ADAM_TRAIN_MIX_H
#define ADAM_TRAIN_MIX_H

#include <stdbool.h>

#include "data/supply.h"
#include "model/model.h"
#include "run/settings.h"

// {0} mixes nothing.
struct mix {
    double mixup, cutmix; // alpha of each, 0: not; with both, each is as likely for a pair
    struct shape shape;   // of a sample
    int outputs;          // numbers that it has as targets, where it has these
    uint64_t seed;
};

struct mix mix_of(const struct settings *settings, const struct model *model);
bool mix_wanted(const struct mix *mix);

// Mixes the samples of `batch` in place, and their targets with them; where they have labels, makes
// `other` and `share`, of n, its second labels. A sample in the middle, and a pair of which one has
// no label, stay as they are: their share is 1.
void mix_batch(const struct mix *mix, struct batch *batch, int32_t *other, float *share);

#endif
