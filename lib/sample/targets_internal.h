// What the readers of both kinds of tables fill. Inside lib/sample/targets*.c only.
#ifndef ADAM_SAMPLE_TARGETS_INTERNAL_H
#define ADAM_SAMPLE_TARGETS_INTERNAL_H

#include "sample/targets.h"
#include "store/stream.h"

struct target_key {
    const char *key; // in the text
    uint32_t row;
    uint64_t line;
};

struct targets {
    char *name;              // of the file, for messages
    char *text;              // of a TSV; its keys lie in it
    struct target_key *keys; // sorted; NULL: rows are in the order of the samples
    float *values;           // rows x width
    uint64_t rows;
    int width;
};

// Makes room for rows x width numbers.
int targets_make(struct targets *targets, uint64_t rows, uint64_t width, struct error *err);
// targets_text.c: all of the text.
int targets_read_text(struct targets *targets, struct stream *stream, struct classes *classes,
                      struct error *err);

#endif
