// Whether the kernels of this machine compute what the reference does: small nets of
// one layer each, forward and backward, in mini-batches that take every layout; and a
// larger one as it is predicted (model/prepared.h). For who suspects a processor, a
// compiler or a library.
#ifndef ADAM_MEASURE_SELFTEST_H
#define ADAM_MEASURE_SELFTEST_H

#include <stdbool.h>

#include "core/json.h"

struct error;
struct kernels;

// Largest difference allowed, relative to the largest value of its kind: sums of some
// hundred products of 24 bits, added up in other orders, some of them transformed.
#define SELFTEST_TOLERANCE 1e-4

enum { SELFTEST_LAYERS = 25, SELFTEST_FAMILIES = 4 };

struct selftest {
    const struct kernels *families[SELFTEST_FAMILIES];
    int family_count;
    struct {
        const char *line;                      // of the model, and what is done with it
        double differences[SELFTEST_FAMILIES]; // of scores and gradients
    } layers[SELFTEST_LAYERS];
    bool good;
};

// The families that this machine has besides the reference, the one in use last;
// returns how many.
int selftest_families(const struct kernels *families[SELFTEST_FAMILIES]);

// Trains or predicts each case with the reference and with these families.
int selftest_run(struct selftest *test, const struct kernels *const *families, int family_count,
                 struct error *err);

// As columns for people, to be freed with free(), and as one object (adam-ctl(1)).
// NULL when out of memory.
char *selftest_text(const struct selftest *test);
json_t *selftest_json(const struct selftest *test);

#endif
