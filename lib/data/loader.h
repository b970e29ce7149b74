// Batches for training and evaluation, made ahead of demand.
//
// "The model training machines request images in advance in batches using a
//  background thread so that the main training threads always have the required
//  image data in memory." (Adam 3.1)
#ifndef ADAM_DATA_LOADER_H
#define ADAM_DATA_LOADER_H

#include "data/dataset.h"
#include "data/supply.h"
#include "ops/ops.h"

struct loader_config {
    const struct dataset *dataset; // or, with one pass in the order it comes:
    struct source *source;
    const struct classes *names; // of the source, which adds to it; may be NULL
    const struct ops *augment;   // may be NULL; before `input`
    const struct ops *input;     // the model's input operations; may be NULL
    int channels, height, width; // what the model wants; another shape is STATUS_DATA
    int classes;                 // above 0: a label outside 0..classes-1 is STATUS_DATA
    int batch;                   // samples a batch
    uint64_t epochs;             // stop behind this one
    uint64_t first_number;       // resume at this batch
    bool shuffle;                // a new random order each epoch, from the seed
    uint64_t seed;
    int threads; // that decode and augment; at least 1
    int ahead;   // batches made ahead of demand; at least 2
};

struct loader;

// Starts the threads. What the config points to must outlive the loader.
// The batches are the same whatever the number of threads.
int loader_start(struct loader **out, const struct loader_config *config, struct error *err);

// The next batch, in order of `number` over all callers, or NULL behind the last
// one or after an error (see loader_stop). Any thread may call, holding no other
// batch; when a batch is ready it takes no lock and makes no system call.
// *waited (may be NULL) grows by the seconds waited.
struct batch *loader_take(struct loader *loader, double *waited);
void loader_give_back(struct loader *loader, struct batch *batch);

// The same loader as the training loop sees it.
struct supply *loader_supply(struct loader *loader);

// Ends the threads and frees everything. The first error of a loading thread
// comes back here. Takers must have returned.
int loader_stop(struct loader *loader, struct error *err);
// STATUS_OK until a loading thread has failed; the same error, before loader_stop.
int loader_status(const struct loader *loader, struct error *err);
// Adds to `classes` the names of the source as far as it has been read.
int loader_names(struct loader *loader, struct classes *classes, struct error *err);
// Instead of loader_stop, when the process is about to end and a loading thread
// may be waiting for a silent pipe, from which nothing wakes it: the threads are
// left to themselves, and so is all that they may still touch.
void loader_abandon(struct loader *loader);
// Makes every loader_take return NULL from now on; any thread may call.
void loader_cancel(struct loader *loader);

#endif
