// Where the training loop takes its batches from: a loader of this process
// (data/loader.h), or data servers (remote/data_client.h). One interface for both.
//
// Threads: all functions may be called by any thread at any time.
#ifndef ADAM_DATA_SUPPLY_H
#define ADAM_DATA_SUPPLY_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

struct error;

// n samples of channels x height x width floats each, one behind the other,
// ready for net_forward. Owned by the supply; the taker's until given back.
struct batch {
    float *input;    // n x channels x height x width
    int32_t *label;  // n
    float *target;   // n x outputs, where they have targets and not labels; else NULL
    uint32_t *index; // n: which samples of the data set, for reports
    uint64_t *draw;  // n: what randomness in the net (dropout) may depend on
    // Of samples that the taker has mixed (train/mix.h), whose the two are; NULL: they are not.
    int32_t *other;  // n: the second label
    float *share;    // n: of the first label; the second one has the rest
    int n;           // 1..batch; an epoch's last may be short. 0: none just now
    uint64_t number; // where it stands in the run, counted in batches from 0
    uint64_t epoch;  // 0, 1, 2...
};

// The targets of sample i and those behind it, of so many numbers each; NULL: they have labels.
static inline const float *batch_target(const struct batch *batch, int i, int outputs) {
    return batch->target ? batch->target + (size_t)i * (size_t)outputs : NULL;
}

// A patience without end.
#define SUPPLY_PATIENT INFINITY

struct supply;

struct supply_ops {
    struct batch *(*take)(struct supply *supply, double patience, double *waited);
    void (*give_back)(struct supply *supply, struct batch *batch);
    void (*lose)(struct supply *supply, struct batch *batch);
    void (*cancel)(struct supply *supply);
    int (*status)(const struct supply *supply, struct error *err);
};

struct supply { // a supply's own struct has this
    const struct supply_ops *ops;
    struct batch empty; // what a taker gets whose patience is over
};

// The next batch; each goes to one taker. When none is there within `patience` seconds,
// the empty one: of it only n = 0 is meaningful, and it is given back like any other. (So
// a learner that must not keep others waiting, as in Rudra's hardsync, goes on without.)
// NULL behind the last batch, when cancelled, and after an error: supply_status tells.
// *waited (may be NULL) grows by the seconds waited.
static inline struct batch *supply_take(struct supply *supply, double patience, double *waited) {
    return supply->ops->take(supply, patience, waited);
}

static inline void supply_give_back(struct supply *supply, struct batch *batch) {
    supply->ops->give_back(supply, batch);
}

// Gives back one that was not trained on, or not by all who should: it counts as if it had not been
// taken, and data servers hand it out again.
static inline void supply_lose(struct supply *supply, struct batch *batch) {
    supply->ops->lose(supply, batch);
}

// Makes every supply_take return NULL from now on.
static inline void supply_cancel(struct supply *supply) {
    supply->ops->cancel(supply);
}

// STATUS_OK unless something failed; `err` then says what, again each time.
static inline int supply_status(const struct supply *supply, struct error *err) {
    return supply->ops->status(supply, err);
}

#endif
