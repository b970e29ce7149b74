// A part of a data set that is held out to test on what the rest has taught.
#ifndef ADAM_DATA_HOLDOUT_H
#define ADAM_DATA_HOLDOUT_H

#include "data/dataset.h"

struct error;

// As dataset_open, in two sets: of each class (with targets: of all) so large a share is in *test,
// by the hash of the key of the original (sample/strata.h), so that copies of one picture are in
// one set; the rest in *train. They are the samples that `adam-prep --split test=SHARE --stratify`
// puts into its files. STATUS_DATA also when nothing would be left for either.
int holdout_open(struct dataset **train, struct dataset **test, const char *path,
                 const struct source_options *options, double share, const struct classes *names,
                 struct error *err);

#endif
