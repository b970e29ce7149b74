// MNIST IDX and numpy arrays: a header, then samples of one size.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "sample/array.h"
#include "sample/source_kind.h"

struct array_source {
    struct array array;
    struct source_labels labels; // count 0: none
    uint64_t next;
    uint8_t *item; // as it lies in the file
    size_t item_size;
};

static bool recognise_idx(const char *path, const uint8_t *data, size_t size) {
    (void)path;
    return array_is_idx(data, size);
}

static bool recognise_npy(const char *path, const uint8_t *data, size_t size) {
    (void)path;
    return array_is_npy(data, size);
}

static int item_shape(const struct source *source, struct image *image, struct error *err) {
    const struct array_source *state = source->state;
    return array_shape(image, &state->array, &source->options.decode, stream_name(source->stream),
                       err);
}

static int open_array(struct source *source,
                      int (*read)(struct array *, struct stream *, struct error *),
                      struct error *err) {
    struct array_source *state = source->state = mem_zeroed(1, sizeof *state);
    if (!state)
        return error_nomem(err);
    int status = read(&state->array, source->stream, err);
    if (status)
        return status;
    state->item_size = state->array.item_values * (uint64_t)state->array.element.size;
    if (state->item_size > source->options.max_bytes)
        return error_set(err, STATUS_DATA, "%s: samples of %zu bytes, and %llu are allowed",
                         stream_name(source->stream), state->item_size,
                         (unsigned long long)source->options.max_bytes);
    state->item = mem_array(state->item_size, 1);
    if (!state->item)
        return error_nomem(err);
    // Tried once, so that a shape out of bounds is refused before any sample.
    struct image shape = {0};
    status = item_shape(source, &shape, err);
    image_free(&shape);
    if (status)
        return status;
    return source_labels_open(&state->labels, source, state->array.size[0], err);
}

static int open_idx(struct source *source, struct error *err) {
    return open_array(source, array_read_idx, err);
}

static int open_npy(struct source *source, struct error *err) {
    return open_array(source, array_read_npy, err);
}

static void close_array(struct source *source) {
    struct array_source *state = source->state;
    if (!state)
        return;
    source_labels_free(&state->labels);
    free(state->item);
    free(state);
}

static int64_t array_count(const struct source *source) {
    const struct array_source *state = source->state;
    return (int64_t)state->array.size[0];
}

static int check_end(struct source *source, struct error *err) {
    const uint8_t *data;
    size_t got;
    int status = stream_peek(source->stream, 1, &data, &got, err);
    if (!status && got > 0)
        return error_set(err, STATUS_DATA, "%s: bytes behind the last sample, at offset %llu",
                         stream_name(source->stream),
                         (unsigned long long)stream_offset(source->stream));
    return status;
}

static int read_item(struct source *source, struct sample *sample, struct error *err) {
    struct array_source *state = source->state;
    struct image *image = &sample->image;
    int status = item_shape(source, image, err);
    if (status)
        return status;
    void *to = image->type == PIXEL_U8 ? image->u8 : state->item;
    size_t got;
    if ((status = stream_read(source->stream, to, state->item_size, &got, err)))
        return status;
    if (got < state->item_size)
        return error_set(err, STATUS_DATA, "%s: ends within sample %llu of %llu, at offset %llu",
                         stream_name(source->stream), (unsigned long long)state->next,
                         (unsigned long long)state->array.size[0],
                         (unsigned long long)stream_offset(source->stream));
    if (image->type == PIXEL_F32)
        element_floats(image->f32, state->item, image_values(image), state->array.element);
    return STATUS_OK;
}

static int array_next(struct source *source, struct sample *sample, bool *more, struct error *err) {
    struct array_source *state = source->state;
    *more = state->next < state->array.size[0];
    if (!*more)
        return check_end(source, err);
    int status = read_item(source, sample, err);
    if (!status)
        status = source_number(source, sample, state->next, err);
    if (!status && state->labels.count > 0)
        sample->label = state->labels.labels[state->next];
    state->next++;
    return status;
}

const struct source_kind source_idx = {
    .name = "idx",
    .has_labels = true,
    .recognise = recognise_idx,
    .open = open_idx,
    .next = array_next,
    .count = array_count,
    .close = close_array,
};

const struct source_kind source_npy = {
    .name = "npy",
    .has_labels = true,
    .recognise = recognise_npy,
    .open = open_npy,
    .next = array_next,
    .count = array_count,
    .close = close_array,
};
