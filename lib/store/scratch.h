// Numbers of which not all need be in memory at a time: they lie in a file that has no name, where
// the system puts what is not in use. It is gone with the process, however that ends.
#ifndef ADAM_STORE_SCRATCH_H
#define ADAM_STORE_SCRATCH_H

#include <stddef.h>

struct error;

// n zeroed floats, aligned to MEM_ALIGN, on the disk of `folder`. Free with scratch_free.
// STATUS_CANTCREATE: no file can be made there; STATUS_IO: there is no room for it.
int scratch_open(float **out, const char *folder, size_t n, struct error *err);
void scratch_free(float *floats); // may be NULL

#endif
