// The two formats of plain arrays, IDX and .npy: their headers, read and written.
#ifndef ADAM_SAMPLE_ARRAY_H
#define ADAM_SAMPLE_ARRAY_H

#include "sample/element.h"
#include "sample/sample.h"
#include "store/stream.h"

struct error;

enum { ARRAY_DIMENSIONS = 8 };

// The first dimension counts the samples.
struct array {
    struct element element;
    int dimensions;
    uint64_t size[ARRAY_DIMENSIONS];
    uint64_t item_values; // product of the sizes behind the first
};

bool array_is_idx(const uint8_t *data, size_t size);
bool array_is_npy(const uint8_t *data, size_t size);

// Takes the header from the stream. STATUS_DATA.
int array_read_idx(struct array *array, struct stream *stream, struct error *err);
int array_read_npy(struct array *array, struct stream *stream, struct error *err);

// Writes a header for ubyte ('u', 1) or float ('f', 4) values; *size is its length.
enum { ARRAY_HEADER_MAX = 256 };
void array_write_idx(uint8_t header[ARRAY_HEADER_MAX], size_t *size, const struct array *array);
void array_write_npy(uint8_t header[ARRAY_HEADER_MAX], size_t *size, const struct array *array);

// The shape that an item has as a picture: H x W, H x W x C, or D as 1 x D.
// STATUS_DATA when it has another number of dimensions, is out of bounds or has more pixels than
// the options allow.
int array_shape(struct image *image, const struct array *array,
                const struct decode_options *options, const char *name, struct error *err);

#endif
