// Which part of a data set a sample belongs to, by the hash of its key alone (of a
// copy, of the key of its original): it is in the same part whatever else is in the
// set, and whatever the seed.
//
// Each part is drawn from what the parts before it leave, with a hash of its own that
// depends on its name. So a set that came out of a split can be split again under
// another name, and test=0.1 holds the same samples with valid=0.1 behind it.
#ifndef ADAM_SAMPLE_SPLIT_H
#define ADAM_SAMPLE_SPLIT_H

#include <stdint.h>

struct error;

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

// The same by pieces: the hash of a key, and its place in the draw of part 1, 2..., which takes the
// lowest of those that the parts before it leave.
uint64_t split_key(const char *key);
uint64_t split_place(const struct split *split, int part, uint64_t key);

// The name of the file for a part: each '{split}' in `path` is replaced by the part's
// name; without it part 0 is `path` itself, and the others get "-NAME" in front
// of the extension (data.arec, data-test.arec; set.tar.gz, set-test.tar.gz;
// pictures/, pictures-test/; x-idx3-ubyte, x-test-idx3-ubyte). Freed with free();
// NULL when out of memory.
char *split_path(const struct split *split, int part, const char *path);

#endif
