// What samples have as targets in the place of a label: a table beside the data.
//
//   TSV   KEY<TAB>NAME<TAB>NAME..., then a line a sample: its key, and a number for each name;
//         or KEY<TAB>labels: its key, and the names of its classes with commas between, or nothing
//   .npy  n, or n x T numbers, those of the samples in their order
//
// Gzip, zstd and xz are undone. Immutable once open: threads share it.
#ifndef ADAM_SAMPLE_TARGETS_H
#define ADAM_SAMPLE_TARGETS_H

#include "sample/sample.h"

struct error;

struct targets;

#define TARGETS_MAX 1000000 // numbers of a sample

// `classes` gets the names of the columns, in their order; of the classes, sorted; or "0", "1"...
// of an array. Where it has names already these are those wanted, and the order of the numbers: a
// table that has others, or lacks columns, is STATUS_DATA, as is all that is no such table, with
// its line. STATUS_NOINPUT, STATUS_IO.
int targets_open(struct targets **out, const char *path, struct classes *classes,
                 struct error *err);
void targets_close(struct targets *targets); // accepts NULL

// Numbers of a sample, and rows of samples.
int targets_width(const struct targets *targets);
uint64_t targets_rows(const struct targets *targets);
// STATUS_DATA unless there are as many rows as samples, where rows are in their order.
int targets_check_count(const struct targets *targets, uint64_t samples, struct error *err);

// The row of the sample of this key, which is number `number` of its set, from 0. STATUS_DATA: it
// has none.
int targets_find(const struct targets *targets, const char *key, uint64_t number, uint32_t *row,
                 struct error *err);
// Its numbers, all of them finite.
const float *targets_at(const struct targets *targets, uint32_t row);

#endif
