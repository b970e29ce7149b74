// The best of the checkpoints that were tested: RUN/best.
#ifndef ADAM_RUN_BEST_H
#define ADAM_RUN_BEST_H

#include <stdbool.h>
#include <stdint.h>

#include "core/json.h"

struct error;

struct best {       // {0}: nothing was tested
    bool known;     // what follows
    double top1;    // share of the samples that were recognised
    double loss;    // of the same test
    uint64_t clock; // of its checkpoint
    double epoch;   // likewise
    uint64_t worse; // tests since then
};

// A test at this clock: of two with the same accuracy the lower loss is better. True: it is the
// best so far.
bool best_take(struct best *best, double top1, double loss, uint64_t clock, double epoch);

// As checkpoints remember it; NULL when out of memory. Reading takes what is no such object for
// nothing.
json_t *best_json(const struct best *best);
struct best best_read(const json_t *object);

#endif
