// The accuracy of a model on a data set.
#ifndef ADAM_TRAIN_EVALUATE_H
#define ADAM_TRAIN_EVALUATE_H

#include "data/loader.h"
#include "model/net.h"
#include "run/best.h"

struct error;

// Of samples that have targets, for each output.
struct tally_output {
    uint64_t wanted;       // FIGURE_MAP: samples of the class
    double precision;      // and its average precision, after tally_settle
    double error, squares; // FIGURE_R2: sums of the errors, as they are and squared
    double mean, spread;   // of the targets: the sum of squared distances from their mean
};

struct tally_rank {
    float score;
    bool wanted;
};

// Sums over the samples that have a label, or targets. The caller owns it.
struct tally {
    enum figure figure; // that says how good the model is; FIGURE_TOP1: samples have labels
    int classes;
    uint64_t samples, top1, top5;
    double loss;                  // sum of the losses
    struct tally_output *outputs; // [classes], of samples with targets; what follows, of labels
    struct tally_rank *ranks;     // FIGURE_MAP: [samples][classes]
    uint64_t room;                // samples of them
    uint64_t *truth;              // [classes]: samples of the class
    uint64_t *predicted;          // [classes]: samples predicted as the class
    uint64_t *correct;            // [classes]: samples of the class, predicted as it
    uint64_t *confusion;          // [classes x classes]: [true][predicted]; NULL: not counted
};

// STATUS_IO: out of memory, as for tally_confusion. Free with tally_free.
int tally_init(struct tally *tally, int classes, struct error *err);
// The same for a model and samples that have so many targets (0: labels).
int tally_open(struct tally *tally, const struct model *model, int targets, struct error *err);
// Starts counting the confusion matrix.
int tally_confusion(struct tally *tally, struct error *err);
void tally_free(struct tally *tally);

// Counts one sample by its scores (classes floats). Ignores a sample whose label is below
// 0. The caller adds the loss, which depends on the output layer (net_loss).
void tally_add(struct tally *tally, const float *scores, int32_t label);

// Counts one by its targets, as many. STATUS_IO: out of memory.
int tally_add_targets(struct tally *tally, const float *scores, const float *targets,
                      struct error *err);
// When all are counted, before figures are asked for. STATUS_IO: out of memory.
int tally_settle(struct tally *tally, struct error *err);

// What figure_names calls by tally->figure; higher is better. Mean average precision is that of the
// classes that some sample has; R2 the mean of all outputs. 0 without samples.
double tally_figure(const struct tally *tally);
// The average precision of a class, as scikit-learn's average_precision_score; NAN: no sample is of
// it. The mean absolute error and R2 of an output.
double tally_precision(const struct tally *tally, int c);
double tally_error(const struct tally *tally, int c);
double tally_r2(const struct tally *tally, int c);
double tally_mean_error(const struct tally *tally); // of all outputs

// Fractions of the samples, 0..1, and the mean loss; 0 without samples.
double tally_top1(const struct tally *tally);
double tally_top5(const struct tally *tally);
double tally_loss(const struct tally *tally);

// Writes the k classes with the highest scores to `top`, best first. Of equal scores the
// lower label comes first. 1 <= k <= classes.
void scores_top(const float *scores, int classes, int *top, int k);

// Called for each sample with its scores (classes floats), in the order of the data, by
// several threads but one at a time. A status other than STATUS_OK ends the evaluation.
typedef int evaluate_sample(void *self, const struct batch *batch, int i, const float *scores,
                            struct error *err);

// What to evaluate, and how. The caller owns what it points to; parameters must not change
// during the evaluation.
struct evaluate_config {
    const struct model *model;
    const struct kernels *kernels;
    const float *parameters;
    bool exact;            // never by prepared weights (model/prepared.h), which take memory
    int threads;           // each with its own context; at least 1
    evaluate_sample *each; // may be NULL
    void *self;            // of `each`
};

// Runs all batches of `loader`, which have at most `batch` samples, through the model and adds
// them to `tally`. The caller has started the loader at batch 0, and stops it. The result is
// the same to the last bit for any number of threads. Returns the status of `each`, or
// STATUS_IO when out of memory. An error of the loader is not returned here but by loader_stop.
int evaluate(struct tally *tally, const struct evaluate_config *config, struct loader *loader,
             int batch, struct error *err);

#endif
