// Shared by prepare.c, prepare_read.c and prepare_write.c: groups of copies on their way through
// the pipeline.
#ifndef ADAM_PREP_PREPARE_INTERNAL_H
#define ADAM_PREP_PREPARE_INTERNAL_H

#include "core/error.h"
#include "prep/copies.h"
#include "prep/prepare.h"
#include "prep/shuffle.h"
#include "prep/transform.h"
#include "sample/strata.h"

// A group of small samples goes through the pipeline as one job; a large one goes alone.
#define GROUP_COPIES 16
#define GROUP_BYTES (64 * 1024)

// One copy of an input on its way.
struct sample_copy {
    int input; // in the group
    int64_t number;
    bool last; // of all copies of the input
    int part;
    bool bad;           // cannot be made
    bool no_loss;       // bad, and no sample is missing by that
    struct error error; // why it is bad, of the first bad copy of the input in the group
    struct sample out;
};

// What has become of the copies of the input that is being written.
struct copies_written {
    uint64_t good, bad;
    struct error why; // of the first bad one
};

struct copy_group {
    struct sample inputs[GROUP_COPIES];
    uint64_t index[GROUP_COPIES]; // of each input in the run
    bool drawn;                   // the inputs are to be drawn
    int input_count, copy_count;
    struct sample_copy copies[GROUP_COPIES];
    uint64_t finished;    // samples whose last copy is here, and missing ones
    struct classes added; // class names that appeared since the group before
};

struct prepare {
    const struct prepare_config *config;
    const struct split *split;

    // The reader's.
    struct inputs *inputs; // NULL: digits are drawn
    struct classes classes;
    int classes_sent; // to the writer, with the groups
    struct class_copies copies;
    uint64_t ahead[SPLIT_PARTS]; // samples of each part, when balance
    struct strata strata;        // when stratify
    struct sample current;       // its copies from next_copy on are still to come
    int64_t next_copy, copy_count;
    uint64_t current_index, read;
    int current_part;
    uint64_t named;      // copies so far
    struct error failed; // an error that waits for the group before it to leave

    // The workers'.
    struct transform transform;
    struct transform_scratch *scratch;

    // The writer's.
    struct classes out_classes;
    struct copies_written written;
    struct outputs *outputs;
    struct shuffle *shuffle;
    struct prepare_counts *counts;
};

// ---- prepare_read.c: the reader ----

// The passes over all inputs that balance and strata take before the last one.
int prepare_look_ahead(struct prepare *p, struct error *err);
// The pipeline's `read`: `context` is a struct prepare, `slot` a struct copy_group.
int prepare_read_group(void *context, void *slot, bool *more, struct error *err);
// Adds the names that the writer does not know yet.
int prepare_send_classes(struct prepare *p, struct classes *added, struct error *err);
// Whether each part got what it should, by what was counted.
int prepare_check_parts(const struct prepare *p, const uint64_t *counts, struct error *err);

// ---- prepare_write.c: the writer ----

int prepare_learn_classes(struct prepare *p, const struct classes *added, struct error *err);
// The pipeline's `write`.
int prepare_write_group(void *context, void *slot, struct error *err);
// Writes what the shuffle holds.
int prepare_drain_shuffle(struct prepare *p, struct error *err);

#endif
