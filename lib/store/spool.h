// Bytes that must wait until something before them is known: a temporary file
// in $TMPDIR (or /tmp) without a name, so that nothing is left behind. STATUS_IO.
#ifndef ADAM_STORE_SPOOL_H
#define ADAM_STORE_SPOOL_H

#include "store/output.h"

struct error;

struct spool; // belongs to one thread

int spool_open(struct spool **out, struct error *err);
void spool_close(struct spool *spool);
int spool_write(struct spool *spool, const void *data, size_t size, struct error *err);

// Back to the beginning, to read what was written.
int spool_rewind(struct spool *spool, struct error *err);
// *got is less than `size` only at the end.
int spool_read(struct spool *spool, void *data, size_t size, size_t *got, struct error *err);
// Any part of it, from `offset` on, wherever reading and writing are.
int spool_read_at(struct spool *spool, uint64_t offset, void *data, size_t size, size_t *got,
                  struct error *err);
// Rewinds and appends everything to an output.
int spool_copy(struct spool *spool, struct output *output, struct error *err);

#endif
