// The work of adam-prep: samples in, changed, out. One thread reads, several
// decode, change and encode, the caller's writes in the order of reading.
//
// "The training data set is augmented by randomly applying a different
//  transformation to each image so that each training epoch effectively processes
//  a different variant of the same image. This is done in advance since some of
//  the image transformations are compute intensive" (Adam 3.1)
#ifndef ADAM_PREP_PREPARE_H
#define ADAM_PREP_PREPARE_H

#include "ops/ops.h"
#include "prep/inputs.h"
#include "prep/outputs.h"

struct error;

struct prepare_counts {
    uint64_t in;                 // samples read, good, bad and missing
    uint64_t skipped;            // that could not be used or were missing: without any copy
    uint64_t copies_skipped;     // of the other samples, that could not be made
    uint64_t out;                // copies written
    uint64_t parts[SPLIT_PARTS]; // of them, in each part
    int classes;
};

struct prepare_config {
    // Inputs, or drawn digits in their place.
    struct inputs_config inputs;
    int64_t draw; // how many digits to draw; 0: read the inputs
    int draw_size;

    const struct ops *ops;      // for part 0; NULL: none
    const struct ops *test_ops; // for the other parts; NULL: none
    int64_t copies;             // of each sample of part 0
    bool stratify;              // each part gets its share of every class
    bool balance;               // more copies of the samples of smaller classes of part 0, as they
                                // are before any is decoded
    const char *name;           // pattern for keys; NULL: see copies_name
    bool shuffle;
    uint64_t memory; // for the shuffle, in bytes
    bool bare;       // pixels are wanted: nothing stays encoded

    struct outputs_options outputs; // its split counts everywhere
    const struct classes *classes;  // class names that are fixed; NULL: as they come
    bool stop_on_error;             // at a loss; else bad ones are left out
    int threads;
    uint64_t seed;

    void *context; // for the functions below, called on the caller's thread; may be NULL
    // A sample was left out, or some of its copies. An error ends the run.
    int (*rejected)(void *context, const char *path, const char *reason, struct error *err);
    void (*progress)(void *context, const struct prepare_counts *counts);
    bool (*stopped)(void);
};

// STATUS_OK also when samples were skipped (see counts). On any other status
// there is no output, except shards that were complete and standard output.
int prepare_run(const struct prepare_config *config, struct prepare_counts *counts,
                struct error *err);

#endif
