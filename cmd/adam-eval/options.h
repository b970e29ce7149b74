// The options of adam-eval, and what they ask for together.
#ifndef ADAM_EVAL_OPTIONS_H
#define ADAM_EVAL_OPTIONS_H

#include <string.h>

#include "cli/network.h"
#include "cli/option.h"
#include "sample/source.h"

struct error;

#define PROGRAM "adam-eval"

struct options {
    const char *model, *data, *files_from, *from, *labels, *targets, *label_from, *ops;
    const char *features, *out;
    const char *print, *confusion, *per_class, *per_sample, *format, *on_error, *reject;
    struct option_list sets;
    char **pictures; // operands
    int picture_count;
    int64_t top, threads, batch, partitions, max_pixels;
    int64_t max_body; // as patience: below 0 when it is not given
    double min_top1, every, patience;
    bool null, json, exact, force, quiet;
    struct network network; // its controller is whom to follow; where to listen
};

static inline bool option_is(const char *text, const char *what) {
    return text && !strcmp(text, what);
}

// Whether to go on: the options are in `o`, and fit together. Else *status is how to end.
bool options_parse(struct options *o, int argc, char **argv, int *status, struct error *err);

// Whether standard output is free for predictions.
bool options_may_predict(const struct options *o);
// STATUS_USAGE: --reject is one of the files that are read or written.
int options_check_reject(const struct options *o, struct error *err);
// Samples that come through a pipe or as paths ask for an answer each, a data
// set for its figures; --print and --top say otherwise.
bool options_want_predictions(const struct options *o);
enum label_from options_label_from(const struct options *o);

#endif
