// Batches for training and evaluation, made ahead of demand.
//
// "The model training machines request images in advance in batches using a
//  background thread so that the main training threads always have the required
//  image data in memory." (Adam 3.1)
#ifndef ADAM_DATA_LOADER_H
#define ADAM_DATA_LOADER_H

#include "data/dataset.h"
#include "data/input.h"
#include "data/supply.h"

struct error;

struct loader_config {
    const struct dataset *dataset; // the samples; NULL: those of `source`
    struct source *source;         // read once, in its order
    const struct classes *names;   // those that `source` adds to; may be NULL
    // What the net reads; `before` augments; the seed of the order; above 0 targets as many as the
    // samples have.
    struct input_config input;
    int batch;             // samples of a batch
    uint64_t epochs;       // number of epochs of `dataset`
    uint64_t first_number; // the first batch to give
    bool shuffle;          // `dataset` in a new random order each epoch
    int threads;           // that decode and augment; at least 1
    int ahead;             // batches made ahead of demand; at least 2
    // Whether nobody wants the values of a sample of `dataset` any more: its place in a batch then
    // has any. NULL: all are wanted.
    bool (*known)(const void *self, uint32_t index);
    const void *known_self;
};

struct loader;

// Starts the threads. The caller keeps what the config points to until loader_stop.
// The batches are the same for any number of threads. STATUS_IO: out of memory, or a
// thread could not be started.
int loader_start(struct loader **out, const struct loader_config *config, struct error *err);

// Waits for the next batch. All callers together get the batches in the order of
// `number`. NULL: there are no more, an error occurred (see loader_stop), or the loader was
// cancelled. Any thread may call that holds no other batch. When a batch is ready, takes no
// lock and makes no system call. Adds the seconds waited to *waited (may be NULL).
struct batch *loader_take(struct loader *loader, double *waited);
// Returns a batch to the loader, which then owns it again.
void loader_give_back(struct loader *loader, struct batch *batch);

// The loader as the training loop's supply. It ends with the loader.
struct supply *loader_supply(struct loader *loader);

// Ends the threads and frees everything. Returns the first error of a loading thread.
// No thread may be in loader_take or hold a batch.
int loader_stop(struct loader *loader, struct error *err);
// STATUS_OK, or the error that loader_stop will return. Any thread may call.
int loader_status(const struct loader *loader, struct error *err);
// Adds to `classes` the names in the part of the source that has been read.
int loader_names(struct loader *loader, struct classes *classes, struct error *err);
// Call instead of loader_stop when the process is about to end and a loading thread may
// block on a silent pipe, where nothing can wake it. The threads keep running; they, and
// what they use, are never freed.
void loader_abandon(struct loader *loader);
// Makes every loader_take return NULL from now on. Any thread may call.
void loader_cancel(struct loader *loader);

#endif
