// A model's accuracy on a data set.
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
    uint64_t *truth;     // classes: samples that are of the class
    uint64_t *predicted; // classes: samples that the model puts there
    uint64_t *correct;   // classes: both
    uint64_t *confusion; // classes x classes: [true][predicted]; NULL: not wanted
};

int tally_init(struct tally *tally, int classes, struct error *err);
// Also counts the confusion from now on.
int tally_confusion(struct tally *tally, struct error *err);
void tally_free(struct tally *tally);

// Counts one sample by its scores (classes floats); a label below 0 counts for
// nothing. The loss is the caller's to add: net_loss knows the output layer.
void tally_add(struct tally *tally, const float *scores, int32_t label);

// Shares of the samples, 0..1, and the mean loss; 0 without samples.
double tally_top1(const struct tally *tally);
double tally_top5(const struct tally *tally);
double tally_loss(const struct tally *tally);

// The k classes with the highest scores, best first; the lower label of equals.
// 1 <= k <= classes.
void scores_top(const float *scores, int classes, int *top, int k);

// Told of each sample with its scores (classes floats), by several threads one
// at a time and in the order of the data. A status other than 0 ends it.
typedef int evaluate_sample(void *self, const struct batch *batch, int i, const float *scores,
                            struct error *err);

// Runs all of `loader` (started by the caller at batch 0, stopped by the caller)
// through the model on `threads` threads, each with its own context. The result
// is the same, to the last bit, whatever their number. `each` may be NULL;
// labels of LABEL_NONE count for nothing. Parameters must not change meanwhile.
// An error of the loader shows in loader_stop, not here.
int evaluate(struct tally *tally, const struct model *model, const struct kernels *kernels,
             const float *parameters, struct loader *loader, int batch, int threads,
             evaluate_sample *each, void *self, struct error *err);

#endif
