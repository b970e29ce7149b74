// What adam-eval says: figures, tables and predictions, as TSV or JSON
// (adam-eval(1), OUTPUT). `names` are the model's class names. JSON reals that
// are not finite are null. Errors show in the stream: check ferror() at the end.
#ifndef ADAM_REPORT_RESULTS_H
#define ADAM_REPORT_RESULTS_H

#include <stdbool.h>
#include <stdio.h>

#include "core/json.h"
#include "train/evaluate.h"

struct error;

// samples, top1, top5 or the figures of targets, loss, skipped: a line each, or one object.
int results_figures(FILE *out, const struct tally *tally, uint64_t skipped, bool json,
                    struct error *err);

// A line a class: samples, predicted, correct, precision, recall.
void results_per_class(FILE *out, const struct tally *tally, const char *const *names);
// Of samples that have targets a line an output: of a class the samples that are of it and its
// average precision; of a number its mean absolute error and R2.
void results_per_output(FILE *out, const struct tally *tally, const char *const *names);
// A row for each true class, a column for each predicted one.
void results_confusion(FILE *out, const struct tally *tally, const char *const *names);

// A sample with its k best classes: key, then class and score k times.
int results_prediction(FILE *out, const char *key, int32_t label, const float *scores,
                       const int *top, int k, const char *const *names, bool json,
                       struct error *err);

// A sample with the numbers that a linear output gives: key, then name and number of each.
int results_numbers(FILE *out, const char *key, const float *scores, int outputs,
                    const char *const *names, bool json, struct error *err);
// The same: {NAME: NUMBER, ...}, a new reference. NULL: out of memory.
json_t *results_outputs(const float *scores, int outputs, const char *const *names);

// The same k classes: [{"class": NAME, "score": NUMBER}, ...], a new reference. NULL: out of
// memory.
json_t *results_top(const float *scores, const int *top, int k, const char *const *names);

// A sample with the scores of all classes: the line of names, and one a sample. Of a linear output
// (`numbers`) these are numbers, and there is neither label nor predicted class.
void results_scores_head(FILE *out, bool numbers, int classes, const char *const *names);
int results_scores(FILE *out, const char *key, int32_t label, const float *scores, int classes,
                   const char *const *names, bool json, struct error *err);
int results_number_row(FILE *out, const char *key, const float *scores, int outputs,
                       const char *const *names, bool json, struct error *err);

#endif
