// A data set for training and evaluation: random access to every sample.
#ifndef ADAM_DATA_DATASET_H
#define ADAM_DATA_DATASET_H

#include "sample/source.h"

struct error;

struct dataset; // immutable after opening: shared by threads

// Reads any kind that source_open knows. Pictures are kept as they are stored
// (a JPEG stays encoded, its file mapped, until it is asked for; raw samples of
// one size lie in one block). Every sample must have a label when `labelled`.
// When `names` is given (the class names of a model), labels are mapped to it by
// name; a name that it lacks is STATUS_DATA when `labelled`, else no label.
// With targets (options->targets) samples have these in the place of labels, one each, and `names`
// are those of the outputs.
// What a source would skip is STATUS_DATA here: a data set is whole or not at all. Only
// links that lead back, and what is no regular file, are passed over in a folder, and
// options->hooks.say names them.
int dataset_open(struct dataset **out, const char *path, const struct source_options *options,
                 bool labelled, const struct classes *names, struct error *err);
void dataset_close(struct dataset *dataset);

// Leaves of it only the samples at these places, ascending; before anybody has it.
struct dataset_place {
    uint32_t index;   // as it was
    uint32_t key_crc; // CRC-32 of its key
};
void dataset_keep(struct dataset *dataset, const struct dataset_place *places, uint32_t count);

uint32_t dataset_count(const struct dataset *dataset);
const struct classes *dataset_classes(const struct dataset *dataset);
int32_t dataset_label(const struct dataset *dataset, uint32_t index);
// Numbers that each sample has as targets, and these; 0, and NULL: it has none, but a label.
int dataset_target_count(const struct dataset *dataset);
const float *dataset_targets(const struct dataset *dataset, uint32_t index);
const char *dataset_key(const struct dataset *dataset, uint32_t index);
uint64_t dataset_key_hash(const struct dataset *dataset, uint32_t index);
// CRC-32 over keys, labels and targets: tells one data set from another, for the run record.
uint32_t dataset_digest(const struct dataset *dataset);

// Decodes sample `index` into `image` (copied when it is raw). Threads may call
// it at once, each with its own image. STATUS_DATA: it is damaged, or too large, or its file has
// gone or changed since dataset_open.
int dataset_image(const struct dataset *dataset, uint32_t index,
                  const struct decode_options *options, struct image *image, struct error *err);

#endif
