// A sample as one piece of memory of exactly the size it needs, for samples
// that wait in numbers, in memory or in a file of our own.
#ifndef ADAM_SAMPLE_PACKED_H
#define ADAM_SAMPLE_PACKED_H

#include "sample/sample.h"

struct error;

// The bytes that a packed sample takes.
size_t packed_size(const struct sample *sample);
// Writes exactly those.
void packed_write(uint8_t *to, const struct sample *sample);
// Fills `sample` from them. STATUS_DATA when they are not what packed_write made.
int packed_read(struct sample *sample, const uint8_t *data, size_t size, struct error *err);

// Makes `to` a copy of `from`, without the room `from` may have to spare.
int packed_copy(struct sample *to, const struct sample *from, struct error *err);

#endif
