// The data of a run: opened, and checked against the model before training.
#ifndef ADAM_TRAIN_FEED_H
#define ADAM_TRAIN_FEED_H

#include "data/loader.h"
#include "model/model.h"
#include "run/settings.h"
#include "train/evaluate.h"

struct feed {
    struct dataset *train; // or, for one pass of standard input:
    struct source *source;
    struct dataset *test;   // NULL: none
    struct classes classes; // of the source; grows as it is read
    struct ops *augment, *input;
};

// All of standard input into the records file settings->spool: from then on it is
// a set like any other, in random order from the first epoch on, and a stopped
// run can go on with it. The settings name the file afterwards.
int feed_spool(struct settings *settings, bool force, const struct source_hooks *hooks,
               struct error *err);

// `hooks` reach the program while sets are read (sample/source.h). `classes` are the names of an
// earlier run (perhaps none), to which labels are mapped. Without settings->data there is only the
// test set. A picture of another shape than the model's input, or more classes than it has outputs,
// is STATUS_DATA and names both. STATUS_USAGE, STATUS_NOINPUT, STATUS_DATA, STATUS_IO.
int feed_open(struct feed **out, const struct settings *settings, const struct model *model,
              const struct classes *classes, const struct source_hooks *hooks, struct error *err);
void feed_close(struct feed *feed);

// {"path", "samples", "digest"} of a set, for metrics and manifests; samples is
// null for a stream.
json_t *feed_describe(const char *path, const struct dataset *dataset);

// The loader of the training set, that the caller stops.
int feed_train(const struct feed *feed, const struct settings *settings, const struct model *model,
               uint64_t epochs, uint64_t first, int threads, struct loader **out,
               struct error *err);
// A loader of some samples in random order, for a look at them: of the training set, not
// augmented, or where that is a stream of the test set. STATUS_NOINPUT: neither is there.
int feed_look(const struct feed *feed, const struct settings *settings, const struct model *model,
              int batch, struct loader **out, struct error *err);
// Runs the test set through the model (train/evaluate.h) and adds it to the tally. `each`
// may end it with a status.
int feed_test(const struct feed *feed, const struct settings *settings, const struct model *model,
              const struct kernels *kernels, const float *parameters, int threads,
              struct tally *tally, evaluate_sample *each, void *self, struct error *err);

#endif
