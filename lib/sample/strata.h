// Splits that keep the shares of the classes: of each class, a part gets as many originals as
// its share says, rounded. Which ones, the order of their places in the split's draw says.
#ifndef ADAM_SAMPLE_STRATA_H
#define ADAM_SAMPLE_STRATA_H

#include <stddef.h>

#include "sample/split.h"

struct error;

// {0} is empty. Keeps 16 bytes for each sample.
struct strata {
    struct stratum {
        uint64_t key; // split_key of its original
        int32_t label;
        uint32_t part;
    } * items;
    size_t count, capacity;
};

// Adds a sample, whose original has this key. Copies of the same original count once.
int strata_add(struct strata *strata, const char *origin, int32_t label, struct error *err);
// Decides on all of them.
int strata_decide(struct strata *strata, const struct split *split, struct error *err);
// The part of a sample that was added, after strata_decide.
int strata_part(const struct strata *strata, const char *origin, int32_t label);
void strata_free(struct strata *strata);

#endif
