// The best of the checkpoints that were tested: RUN/best.
#ifndef ADAM_RUN_BEST_H
#define ADAM_RUN_BEST_H

#include <stdbool.h>
#include <stdint.h>

#include "core/json.h"

struct error;

// What says how good a model is, the more the better: the share of samples that it recognises, the
// mean average precision of classes of which samples have several, R2 of numbers.
enum figure { FIGURE_TOP1, FIGURE_MAP, FIGURE_R2 };
extern const char *const figure_names[]; // "top1", "map", "r2", NULL

struct best {           // {0}: nothing was tested
    bool known;         // what follows
    enum figure figure; // which one
    double value;       // of it
    double loss;        // of the same test
    uint64_t clock;     // of its checkpoint
    double epoch;       // likewise
    uint64_t worse;     // tests since then
};

// A test at this clock, of whose `worse` nothing is meant: of two with the same value the lower
// loss is better, both with the digits that checkpoints keep. True: it is the best so far.
bool best_take(struct best *best, const struct best *given);

// As checkpoints remember it; NULL when out of memory. Reading takes what is no such object for
// nothing.
json_t *best_json(const struct best *best);
struct best best_read(const json_t *object);

#endif
