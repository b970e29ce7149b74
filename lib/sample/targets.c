// A table of targets: what it is read from, and how a sample finds its row.
#include "sample/targets.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "sample/array.h"
#include "sample/targets_internal.h"

int targets_make(struct targets *targets, uint64_t rows, uint64_t width, struct error *err) {
    size_t floats;
    if (width < 1 || width > TARGETS_MAX)
        return error_set(err, STATUS_DATA, "%s: %" PRIu64 " numbers a sample; 1 to %d are possible",
                         targets->name, width, TARGETS_MAX);
    if (rows >= UINT32_MAX)
        return error_set(err, STATUS_DATA, "%s: more than 2^32 - 2 rows", targets->name);
    if (!__builtin_mul_overflow((size_t)rows, (size_t)width, &floats))
        targets->values = mem_array(floats + 1, sizeof *targets->values);
    targets->rows = rows;
    targets->width = (int)width;
    return targets->values ? STATUS_OK : error_nomem(err);
}

// --- .npy -----------------------------------------------------------------------------------

static int read_rows(struct targets *targets, const struct array *array, struct stream *stream,
                     struct error *err) {
    uint8_t item[8];
    size_t got, size = (size_t)array->element.size;
    uint64_t count = targets->rows * (uint64_t)targets->width;
    for (uint64_t i = 0; i < count; i++) {
        int status = stream_read(stream, item, size, &got, err);
        if (status)
            return status;
        if (got < size)
            return error_set(err, STATUS_DATA, "%s: ends within row %" PRIu64 " of %" PRIu64,
                             targets->name, i / (uint64_t)targets->width, targets->rows);
        element_floats(&targets->values[i], item, 1, array->element);
        if (!isfinite(targets->values[i]))
            return error_set(err, STATUS_DATA,
                             "%s: row %" PRIu64 " has a number that is not finite", targets->name,
                             i / (uint64_t)targets->width);
    }
    return STATUS_OK;
}

static int check_no_more(const struct targets *targets, struct stream *stream, struct error *err) {
    const uint8_t *data;
    size_t got;
    int status = stream_peek(stream, 1, &data, &got, err);
    if (!status && got > 0)
        return error_set(err, STATUS_DATA, "%s: bytes behind the last row", targets->name);
    return status;
}

static int name_numbers(struct classes *classes, int width, const char *name, struct error *err) {
    int label;
    if (classes->count == 0)
        return classes_number(classes, width - 1, &label, err);
    return classes->count == width
               ? STATUS_OK
               : error_set(err, STATUS_DATA,
                           "%s: has %d numbers a sample, where there are %d outputs", name, width,
                           classes->count);
}

// Before room is made for what a header says.
static int check_size(const struct targets *targets, const struct array *array,
                      const struct stream *stream, struct error *err) {
    uint64_t bytes;
    if (stream_size(stream) < 0 ||
        (!__builtin_mul_overflow(array->size[0], array->item_values, &bytes) &&
         !__builtin_mul_overflow(bytes, (uint64_t)array->element.size, &bytes) &&
         bytes <= (uint64_t)stream_size(stream)))
        return STATUS_OK;
    return error_set(err, STATUS_DATA, "%s: ends before the last of %" PRIu64 " rows",
                     targets->name, array->size[0]);
}

static int read_array(struct targets *targets, struct stream *stream, struct classes *classes,
                      struct error *err) {
    struct array array;
    int status = array_read_npy(&array, stream, err);
    if (!status && array.dimensions > 2)
        status = error_set(err, STATUS_DATA, "%s: %d dimensions, where n or n x T hold targets",
                           targets->name, array.dimensions);
    if (!status)
        status = check_size(targets, &array, stream, err);
    if (!status)
        status = targets_make(targets, array.size[0], array.item_values, err);
    if (!status)
        status = read_rows(targets, &array, stream, err);
    if (!status)
        status = check_no_more(targets, stream, err);
    return status ? status : name_numbers(classes, targets->width, targets->name, err);
}

// --- the table --------------------------------------------------------------------------------

static int read_table(struct targets *targets, struct stream *stream, struct classes *classes,
                      struct error *err) {
    const uint8_t *data;
    size_t got;
    int status = stream_peek(stream, 10, &data, &got, err);
    if (status)
        return status;
    return array_is_npy(data, got) ? read_array(targets, stream, classes, err)
                                   : targets_read_text(targets, stream, classes, err);
}

int targets_open(struct targets **out, const char *path, struct classes *classes,
                 struct error *err) {
    struct targets *targets = mem_zeroed(1, sizeof *targets);
    struct stream *stream = NULL;
    int status = targets && (targets->name = mem_string(path)) ? STATUS_OK : error_nomem(err);
    if (!status)
        status = stream_open(&stream, path, err);
    if (!status)
        status = read_table(targets, stream, classes, err);
    stream_close(stream);
    if (status)
        targets_close(targets);
    else
        *out = targets;
    return status;
}

void targets_close(struct targets *targets) {
    if (!targets)
        return;
    free(targets->name);
    free(targets->text);
    free(targets->keys);
    free(targets->values);
    free(targets);
}

int targets_width(const struct targets *targets) {
    return targets->width;
}

uint64_t targets_rows(const struct targets *targets) {
    return targets->rows;
}

int targets_check_count(const struct targets *targets, uint64_t samples, struct error *err) {
    if (targets->keys || targets->rows == samples)
        return STATUS_OK;
    return error_set(err, STATUS_DATA, "%s: %" PRIu64 " rows for %" PRIu64 " samples",
                     targets->name, targets->rows, samples);
}

static int compare_to_key(const void *key, const void *row) {
    return strcmp(key, ((const struct target_key *)row)->key);
}

int targets_find(const struct targets *targets, const char *key, uint64_t number, uint32_t *row,
                 struct error *err) {
    if (!targets->keys) {
        *row = (uint32_t)number;
        return number < targets->rows
                   ? STATUS_OK
                   : error_set(err, STATUS_DATA,
                               "%s has %" PRIu64 " rows, and none for sample '%s'", targets->name,
                               targets->rows, key);
    }
    const struct target_key *found =
        targets->rows ? bsearch(key, targets->keys, targets->rows, sizeof *found, compare_to_key)
                      : NULL;
    if (!found)
        return error_set(err, STATUS_DATA, "%s has no row for sample '%.200s'", targets->name, key);
    *row = found->row;
    return STATUS_OK;
}

const float *targets_at(const struct targets *targets, uint32_t row) {
    return targets->values + (size_t)row * (size_t)targets->width;
}
