// A model as a filter: samples of a source in, scores out in the same order, on
// several threads, with no more in memory than their batches.
#ifndef ADAM_TRAIN_PREDICT_H
#define ADAM_TRAIN_PREDICT_H

#include "sample/source.h"
#include "train/evaluate.h"
#include "train/scoring.h"

struct error;

// Told of each sample, one at a time and in order. sample->image is the picture
// as it was decoded, before any operation. `scores` has one float a class; with config.below, one
// for each value of the output layer's input, channels x height x width.
// A status other than 0 ends the prediction.
typedef int predict_sample(void *self, const struct sample *sample, const float *scores,
                           struct error *err);
// Told of each sample that cannot be used, in its place among the others.
typedef int predict_skip(void *self, const struct sample *sample, const struct error *why,
                         struct error *err);

struct predict_config {
    struct scoring_config scoring;
    struct source *source;
    const struct classes *classes; // the source's; its first names are the model's
    int known;                     // class names of the model: fewer than outputs; 0: as many
    int descriptor;                // of a pipe that the source reads; -1: none
    bool below;                    // `each` gets what the output layer reads, not its scores
    int threads;                   // each with its own context
    struct tally *tally;           // counts the samples, of the figure that they have; may be NULL
    bool labelled;                 // a sample without a label the model knows is a bad one
    predict_sample *each;          // may be NULL
    predict_skip *skip;            // NULL: the first bad sample ends the prediction
    void *self;                    // of `each` and `skip`
};

// Batches are full while there is input, so that results do not depend on time
// or on the number of threads; from a pipe that holds nothing more at the moment
// a smaller one goes through at once, so that nobody waits for a result behind
// an unfinished batch. Results before a failure are told before it is returned.
// STATUS_DATA, STATUS_IO, and what the source, `each` and `skip` return.
int predict(const struct predict_config *config, struct error *err);

#endif
