// Which part of a data set a sample belongs to, by the hash of its key alone:
// a key is in the same part whatever else is in the set, and whatever the seed.
#ifndef ADAM_PREP_SPLIT_H
#define ADAM_PREP_SPLIT_H

#include "core/error.h"

#define SPLIT_PARTS 8
#define SPLIT_NAME 32

// Part 0 is "train": what the others leave.
struct split {
    int count; // parts, with part 0; at least 1
    struct split_part {
        char name[SPLIT_NAME];
        double share;
    } parts[SPLIT_PARTS];
};

// 'test=0.1' or 'test=0.1,valid=0.05'. NULL or "" is one part, "train".
// STATUS_USAGE.
int split_parse(struct split *split, const char *text, struct error *err);

int split_of(const struct split *split, const char *key);

// The name of the file for a part: '{split}' in `path` is replaced by the part's
// name; without it part 0 is `path` itself, and the others get "-NAME" in front
// of the extension (data.arec, data-test.arec; set.tar.gz, set-test.tar.gz;
// pictures/, pictures-test/; x-idx3-ubyte, x-test-idx3-ubyte). Freed with free();
// NULL when out of memory.
char *split_path(const struct split *split, int part, const char *path);

#endif
