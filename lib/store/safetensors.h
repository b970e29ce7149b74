// The safetensors format: named arrays in one file, as other frameworks read them.
//
//   8 bytes   length of the header, little-endian
//   header    JSON: {"__metadata__": {text: text}, "name": {"dtype": "F32",
//             "shape": [...], "data_offsets": [begin, end]}, ...}, spaces behind
//   data      the arrays, without holes; offsets count from here
//
// We pad the header so that the data begins at a multiple of 64 bytes. Others do
// not, so the reader assumes no alignment. The format has no checksum: whoever
// writes keeps the CRC-32 beside it.
#ifndef ADAM_STORE_SAFETENSORS_H
#define ADAM_STORE_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/json.h"

struct content;
struct error;

#define TENSOR_RANK_MAX 8

struct tensor {
    const char *name;
    const char *dtype; // "F32"
    int rank;          // 0: one value
    uint64_t dims[TENSOR_RANK_MAX];
    const void *data; // unaligned when read; NULL: it is in a file that was opened
    uint64_t offset;  // of the data in the file that was read
    uint64_t bytes;
};

// What was written, for a manifest.
struct file_sum {
    uint64_t bytes;
    uint32_t crc; // CRC-32 of zlib
};

// Writes to the file descriptor, tensors in the order given. `metadata` is an
// object of strings, or NULL. STATUS_IO; the caller syncs and closes.
int safetensors_write(int fd, const struct tensor *tensors, size_t count, json_t *metadata,
                      struct file_sum *sum, struct error *err);
// The same in pieces, for who does not hold all data at once: what is before the data, with which
// *sum begins; then the bytes of the tensors, in their order. Of the tensors `data` is not looked
// at here. STATUS_IO.
int safetensors_write_header(int fd, const struct tensor *tensors, size_t count, json_t *metadata,
                             struct file_sum *sum, struct error *err);
int safetensors_write_data(int fd, const void *data, size_t size, struct file_sum *sum,
                           struct error *err);

// A file that was read: everything points into `bytes`.
struct safetensors {
    struct tensor *tensors; // in the order of their data
    size_t count;
    json_t *header;   // owns the names
    json_t *metadata; // within it: an object of strings; NULL when there is none
};

// Whether the bytes can be the head of such a file: a length, and the header's first brace.
bool safetensors_recognised(const void *bytes, size_t size);
// `bytes` stays the caller's and must outlive the result. Every length, offset
// and shape is checked: STATUS_DATA says which is wrong.
int safetensors_parse(struct safetensors *out, const void *bytes, size_t size, struct error *err);
// The same of a file of which the header alone is read: no tensor has data. STATUS_IO, too.
int safetensors_open(struct safetensors *out, const struct content *content, struct error *err);
void safetensors_free(struct safetensors *file);

const struct tensor *safetensors_find(const struct safetensors *file, const char *name);
// NULL when there is no such key.
const char *safetensors_text(const struct safetensors *file, const char *key);

#endif
