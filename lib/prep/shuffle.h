// Samples in another order, also when there are more than fit in memory: each
// comes with a number that says where it belongs, and they come back sorted by
// it. What is beyond the memory goes to a temporary file in sorted runs, which
// are merged when the samples are taken. The result is the same whatever the
// memory. STATUS_IO: memory or the disk of the temporary file is out.
#ifndef ADAM_PREP_SHUFFLE_H
#define ADAM_PREP_SHUFFLE_H

#include "sample/sample.h"

struct error;

struct shuffle; // belongs to one thread

// `memory` is the number of bytes that samples may take at a time.
int shuffle_open(struct shuffle **out, uint64_t memory, struct error *err);
void shuffle_close(struct shuffle *shuffle);

// Keeps a copy. `part` travels along. Samples with the same `order` stay in the
// order in which they were put.
int shuffle_put(struct shuffle *shuffle, uint64_t order, int part, const struct sample *sample,
                struct error *err);

// The next sample in order. No more may be put after the first is taken.
int shuffle_take(struct shuffle *shuffle, int *part, struct sample *sample, bool *more,
                 struct error *err);

// Bytes that went to the temporary file.
uint64_t shuffle_spilled(const struct shuffle *shuffle);

#endif
