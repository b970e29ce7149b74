// One evaluation of a model on its samples: what is open for it, and what it has counted.
#ifndef ADAM_EVAL_EVALUATION_H
#define ADAM_EVAL_EVALUATION_H

#include "adam-eval/options.h"
#include "cli/progress.h"
#include "cli/talk.h"
#include "prep/reject.h"
#include "store/textfile.h"
#include "train/predict.h"
#include "train/trained.h"

struct error;

struct evaluation {
    const struct options *o;
    bool predictions; // what goes to standard output line by line
    struct trained trained;
    char *checkpoint; // its path, where it is in partitions; NULL: it is here
    struct partition_processes *processes;
    const struct model *model; // of it, or of the run that is followed
    const float *parameters;
    struct classes classes; // of the source: the model's, then what else it has
    struct ops *before;
    struct source *source;
    int list;     // of the command line's pictures, or -1
    bool by_path; // samples are files: named by their paths
    struct tally tally;
    int *top;
    struct textfile *per_sample;
    struct reject *reject;
    struct progress progress;
    uint64_t told, skipped; // samples
    bool left_out;          // something was, be it no sample
    struct talk talk;
};

// All that --model, its samples and its outputs need. evaluation_close also after a failure.
int evaluation_open(struct evaluation *run, struct error *err);
// The model of --model alone, with its operations.
int evaluation_open_model(struct evaluation *run, struct error *err);
// The parts of it that a model needs which is in memory already, with its operations, after its
// tally.
int evaluation_open_ops(struct evaluation *run, struct error *err);
int evaluation_open_source(struct evaluation *run, struct error *err);
void evaluation_close(struct evaluation *run);

// How pictures get their scores. The model and its operations must be there.
struct scoring_config evaluation_scoring(const struct evaluation *run);

// Classifies all samples, counts them, and tells of each what is wanted.
int evaluation_predict(struct evaluation *run, struct error *err);

// For predict_config.skip: a bad sample is counted, said, and listed where --reject says.
predict_skip evaluation_skip;

// Every sample must have a label where somebody asks what labels decide.
bool evaluation_wants_labels(const struct evaluation *run);
// Whether the model gives numbers, and no scores of classes.
bool evaluation_numbers(const struct evaluation *run);
const char *const *evaluation_names(const struct evaluation *run);

#endif
