// A second look at a trained model: its confusion on test data, and the pictures
// that say most: certain and wrong, hardly right, and one of each class.
#ifndef ADAM_REPORT_REVIEW_H
#define ADAM_REPORT_REVIEW_H

#include "run/checkpoint.h"
#include "sample/source.h"
#include "train/evaluate.h"

struct error;

// A picture as a PNG, small enough for a page.
struct shot {
    char *key;
    int label, predicted;
    float score, truth; // of the predicted and of the true class
    double rank;        // higher comes first
    void *png;          // NULL: not a picture that PNG can hold
    size_t png_size;
    int width, height;
};

// The highest ranks, in order.
struct gallery {
    struct shot *shots;
    int count, most;
};

struct review {
    struct tally tally; // with confusion
    struct classes names;
    struct gallery wrong;    // the most certain first
    struct gallery doubtful; // right, by the smallest margin
    struct gallery typical;  // the first of each class
    uint64_t skipped;        // damaged samples
};

// Predicts all of `data`, on `threads` threads. Every sample needs a label that
// the checkpoint's classes have. STATUS_NOINPUT, STATUS_DATA, STATUS_IO.
int review_run(struct review *review, const struct checkpoint *checkpoint, const char *data,
               const struct source_options *options, int threads, struct error *err);
void review_free(struct review *review);

#endif
