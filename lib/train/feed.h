// The data of a run: opened, and checked against the model before training.
#ifndef ADAM_TRAIN_FEED_H
#define ADAM_TRAIN_FEED_H

#include "data/loader.h"
#include "model/model.h"
#include "run/settings.h"
#include "train/evaluate.h"

struct error;

struct feed {
    struct dataset *train;  // NULL: the training set is a stream, or there is none
    struct source *source;  // standard input, read once; NULL: the training set is no stream
    struct dataset *test;   // NULL: there is no test set
    struct classes classes; // of `source`; grows as it is read
    struct ops *augment;    // of training samples; NULL: none
    struct ops *input;      // of the model's input; NULL: none
    // Of training samples, as in loader_config; NULL: all are wanted.
    bool (*known)(const void *self, uint32_t index);
    const void *known_self;
};

// Copies all of standard input to the records file settings->spool, and makes that file the
// training set in `settings`. The run then reads it in random order from the first epoch on,
// and can be resumed. `force` overwrites an existing file.
int feed_spool(struct settings *settings, bool force, const struct source_hooks *hooks,
               struct error *err);

// Opens the sets that `settings` name; without settings->data only the test set. `hooks` reach
// the program while sets are read (sample/source.h). Labels are numbered by `classes`, the
// names of an earlier run; it may be empty. STATUS_DATA: a picture does not have the shape of
// the model's input, or there are more classes than outputs; the message names both. Also
// STATUS_USAGE, STATUS_NOINPUT, STATUS_DATA, STATUS_IO for what cannot be parsed or read.
int feed_open(struct feed **out, const struct settings *settings, const struct model *model,
              const struct classes *classes, const struct source_hooks *hooks, struct error *err);
void feed_close(struct feed *feed);

// {"path", "samples", "digest"} of a set, for metrics and manifests; `dataset` is NULL for a
// stream, then samples and digest are null. The caller owns the result; NULL: out of memory.
json_t *feed_describe(const char *path, const struct dataset *dataset);
// Whether a set so described is another one than that of before; the text says so then: "train.idx
// is not the test set of before (digest 12345678, was 9abcdef0)". What has no digest is not.
enum { FEED_TEXT = 4096 + 128 };
bool feed_differs(char text[FEED_TEXT], const json_t *before, const json_t *now, const char *words);

// Starts a loader of the training set, from mini-batch `first` to the end of `epochs`, for
// `threads` takers. The caller stops it.
int feed_train(const struct feed *feed, const struct settings *settings, const struct model *model,
               uint64_t epochs, uint64_t first, int threads, struct loader **out,
               struct error *err);
// Starts a loader of samples to look at, in random order: of the training set without
// augmentation, or of the test set when the training set is a stream. The caller stops it.
// STATUS_NOINPUT: there is neither.
int feed_look(const struct feed *feed, const struct settings *settings, const struct model *model,
              int batch, struct loader **out, struct error *err);
// Runs the test set, which must be there, through the model and adds it to `tally`
// (train/evaluate.h). Returns what evaluate returns, or the error of a sample that cannot be
// loaded.
int feed_test(const struct feed *feed, const struct settings *settings,
              const struct evaluate_config *config, struct tally *tally, struct error *err);

#endif
