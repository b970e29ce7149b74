// How many copies of each sample there will be, and what they are called.
#ifndef ADAM_PREP_COPIES_H
#define ADAM_PREP_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

// {.per_sample = N} gives N copies of every sample. With counts (copies_count on
// every sample of a first pass) the classes are balanced: each gets as many as N
// copies of the largest would be, spread evenly over its samples.
struct class_copies {
    int64_t per_sample;
    uint64_t *counts; // samples of each class; owned
    uint64_t *given;  // how many of them had their turn
    size_t classes;
    uint64_t most;
};

int copies_count(struct class_copies *copies, int label, struct error *err);
// The copies of the next sample with this label; in the order of the first pass.
int64_t copies_next(struct class_copies *copies, int label);
void copies_free(struct class_copies *copies);

// Checks a pattern for keys, as in '{key}-{copy}': known placeholders only, and
// {copy} or {number} among them when there are several copies. STATUS_USAGE.
int copies_check_name(const char *pattern, bool several, struct error *err);

// The key of copy 0, 1, 2... of the sample `key`. Without a pattern (NULL) the
// first copy keeps the key, the others get "-2", "-3"... Freed with free(); NULL
// when out of memory. {copy} counts from 1, {number} is `number` with six digits,
// {class} the name of its class.
char *copies_name(const char *pattern, const char *key, int64_t copy, uint64_t number,
                  const char *class_name);

#endif
