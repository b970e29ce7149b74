// Records in a mapped file: the index of every segment, and samples by offset.
#ifndef ADAM_SAMPLE_AREC_INDEX_H
#define ADAM_SAMPLE_AREC_INDEX_H

#include "sample/arec.h"

struct error;

struct arec_position {
    uint64_t offset; // of the sample's chunk in the file
    int32_t label;   // of the reader's classes
    uint32_t key_crc;
};

struct arec_index {
    struct arec_position *positions;
    uint32_t count;
};

// Reads the indices of a file that holds nothing but whole segments; adds their
// class names to `classes`. *found is false, and nothing is changed, when some
// index is absent or damaged: then a scan of the file must do. STATUS_IO when
// out of memory.
int arec_index_read(struct arec_index *index, const uint8_t *file, size_t size,
                    struct classes *classes, bool *found, struct error *err);
// How many samples the tails of a mapped file count, or -1 when it is not whole.
int64_t arec_index_count(const uint8_t *file, size_t size);
void arec_index_free(struct arec_index *index);

// The sample whose chunk is at `offset`, in place. `check` compares the CRC-32
// of all of it too. STATUS_DATA with the offset.
int arec_index_record(struct arec_record *record, const uint8_t *file, size_t size, uint64_t offset,
                      bool check, struct error *err);

#endif
