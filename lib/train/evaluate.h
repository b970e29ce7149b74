// A model's accuracy on a data set, and its predictions.
#ifndef ADAM_TRAIN_EVALUATE_H
#define ADAM_TRAIN_EVALUATE_H

#include "data/loader.h"
#include "model/net.h"

// Sums over the samples that had a label. Owned by the caller; free with
// tally_free.
struct tally {
    int classes;
    uint64_t samples, top1, top5;
    double loss;         // sum of cross-entropies
    uint64_t *confusion; // classes x classes: [true][predicted]
};

int tally_init(struct tally *tally, int classes, struct error *err);
void tally_free(struct tally *tally);

// Told of each sample with its scores (classes floats), by several threads one
// at a time and in the order of the data. A status other than 0 ends it.
typedef int evaluate_sample(void *self, const struct batch *batch, int i, const float *scores,
                            struct error *err);

// Runs all of `loader` (started by the caller, stopped by the caller) through the
// model on `threads` threads. `each` may be NULL; labels of LABEL_NONE count for
// nothing. Parameters must not change meanwhile.
int evaluate(struct tally *tally, const struct model *model, const struct kernels *kernels,
             const float *parameters, struct loader *loader, int batch, int threads,
             evaluate_sample *each, void *self, struct error *err);

#endif
