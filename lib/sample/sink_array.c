// IDX and .npy: a header that counts the samples, so the pixels wait in a
// temporary file until the count is known; labels go to a second file.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "sample/array.h"
#include "sample/sink_kind.h"
#include "sample/source_kind.h"
#include "store/spool.h"

typedef void write_header(uint8_t header[ARRAY_HEADER_MAX], size_t *size,
                          const struct array *array);

struct array_sink {
    write_header *header;
    bool big;           // byte order of floats
    struct image shape; // of all samples, once the first has come; holds no pixels
    uint64_t samples;
    struct spool *pixels;
    struct spool *labels;      // 8 bytes each, little-endian
    int64_t highest;           // label
    bool missing;              // some sample had no label
    struct output *labels_out; // NULL: there is no second file
    char *beside;              // the customary name of that, where readers look; NULL: none
};

// Labels that go elsewhere leave the customary name free: a file there is not theirs.
static int check_beside(struct sink *sink, struct error *err) {
    struct array_sink *state = sink->state;
    if (!state->beside || sink->options.force || access(state->beside, F_OK) != 0)
        return STATUS_OK;
    return error_set(err, STATUS_CANTCREATE,
                     "%s exists, and would hold the labels of %s; --force removes it",
                     state->beside, sink->path);
}

// The second file is opened at once, so that it is refused before the work.
static int open_labels(struct sink *sink, struct error *err) {
    struct array_sink *state = sink->state;
    if (!output_is_stream(sink->path) && !(state->beside = source_labels_name(sink->path)))
        return error_nomem(err);
    const char *name = sink->options.labels_out ? sink->options.labels_out : state->beside;
    int status = sink->options.labels_out ? check_beside(sink, err) : STATUS_OK;
    if (status || !name)
        return status;
    return output_open(&state->labels_out, name, sink->options.force, err);
}

static int open_array(struct sink *sink, write_header *header, bool big, struct error *err) {
    struct array_sink *state = sink->state = mem_zeroed(1, sizeof *state);
    if (!state)
        return error_nomem(err);
    state->header = header;
    state->big = big;
    state->highest = -1;
    int status = open_labels(sink, err);
    if (!status)
        status = spool_open(&state->pixels, err);
    return status ? status : spool_open(&state->labels, err);
}

static int open_idx_sink(struct sink *sink, struct error *err) {
    return open_array(sink, array_write_idx, true, err);
}

static int open_npy_sink(struct sink *sink, struct error *err) {
    return open_array(sink, array_write_npy, false, err);
}

static void free_array(struct sink *sink) {
    struct array_sink *state = sink->state;
    if (!state)
        return;
    spool_close(state->pixels);
    spool_close(state->labels);
    output_abort(state->labels_out);
    free(state->beside);
    free(state);
}

static int check_shape(struct sink *sink, const struct sample *sample, const struct image *image,
                       struct error *err) {
    struct array_sink *state = sink->state;
    struct image *shape = &state->shape;
    if (state->samples == 0)
        *shape = (struct image){.width = image->width,
                                .height = image->height,
                                .channels = image->channels,
                                .type = image->type};
    if (image->width == shape->width && image->height == shape->height &&
        image->channels == shape->channels && image->type == shape->type)
        return STATUS_OK;
    return error_set(err, STATUS_DATA,
                     "%s: sample '%s' is %dx%dx%d, the first was %dx%dx%d; in %s all have one "
                     "shape and type",
                     sink->path, sample->key, image->channels, image->height, image->width,
                     shape->channels, shape->height, shape->width, sink->kind->name);
}

static int put_label(struct array_sink *state, int32_t label, struct error *err) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)label >> 8 * i);
    state->highest = label > state->highest ? label : state->highest;
    state->missing |= label == LABEL_NONE;
    return spool_write(state->labels, bytes, sizeof bytes, err);
}

// Without a second file there is no place for labels.
static int check_place(struct sink *sink, const struct sample *sample, struct error *err) {
    struct array_sink *state = sink->state;
    if (state->labels_out || sample->label == LABEL_NONE)
        return STATUS_OK;
    return error_set(err, STATUS_DATA,
                     "%s on %s has no labels: --labels-out FILE takes them, and --label-from none "
                     "leaves them out",
                     sink->kind->name, output_name(sink->output));
}

static int array_put(struct sink *sink, const struct sample *sample, struct error *err) {
    struct array_sink *state = sink->state;
    const struct image *image;
    const void *data;
    size_t size;
    int status = check_place(sink, sample, err);
    if (!status)
        status = sink_pixels(sink, sample, &image, err);
    if (!status)
        status = check_shape(sink, sample, image, err);
    if (!status)
        status = sink_bytes(sink, image, state->big, &data, &size, err);
    if (!status)
        status = spool_write(state->pixels, data, size, err);
    if (!status)
        status = put_label(state, sample->label, err);
    state->samples += !status;
    return status;
}

static int write_array(struct array_sink *state, struct output *output, const struct array *array,
                       struct error *err) {
    uint8_t header[ARRAY_HEADER_MAX];
    size_t size;
    state->header(header, &size, array);
    return output_write(output, header, size, err);
}

// A label byte in IDX, as MNIST has it, while 256 are enough; else int64 in .npy.
static int write_labels(struct sink *sink, struct error *err) {
    struct array_sink *state = sink->state;
    bool idx = state->big;
    if (idx && state->highest > UINT8_MAX)
        return error_set(err, STATUS_DATA, "%s: label %lld does not fit in a byte", sink->path,
                         (long long)state->highest);
    struct array array = {.element = {idx ? 'u' : 'i', idx ? 1 : 8, false},
                          .dimensions = 1,
                          .size = {state->samples}};
    int status = write_array(state, state->labels_out, &array, err);
    if (!status)
        status = spool_rewind(state->labels, err);
    for (uint64_t i = 0; !status && i < state->samples; i++) {
        uint8_t bytes[8];
        size_t got;
        status = spool_read(state->labels, bytes, sizeof bytes, &got, err);
        if (!status)
            status = output_write(state->labels_out, bytes, idx ? 1 : 8, err);
    }
    return status ? status : output_complete(state->labels_out, err);
}

// Whether there is a label for each sample, or none at all.
static int check_labels(struct sink *sink, struct error *err) {
    struct array_sink *state = sink->state;
    if (!state->labels_out || state->highest < 0 || !state->missing)
        return STATUS_OK;
    return error_set(err, STATUS_DATA, "%s: some samples have a label and some have none",
                     sink->path);
}

static int close_part(struct output **part, struct error *err) {
    struct output *output = *part;
    *part = NULL;
    return output ? output_close(output, err) : STATUS_OK;
}

// In the place of older files: what ends this half-way leaves pictures without labels, never
// with those of others.
static int replace_pair(struct sink *sink, bool labels, struct error *err) {
    struct array_sink *state = sink->state;
    int status = output_clear(state->labels_out, err);
    if (!status && sink->options.labels_out && state->beside)
        status = output_remove(state->beside, err);
    if (!status)
        status = close_part(&sink->output, err);
    return status || !labels ? status : close_part(&state->labels_out, err);
}

// Both files are complete before one of them appears. Pictures that stand nowhere yet come last,
// by sink_close.
static int finish_pair(struct sink *sink, struct error *err) {
    struct array_sink *state = sink->state;
    bool labels = state->highest >= 0;
    if (!state->labels_out)
        return STATUS_OK;
    int status = labels ? write_labels(sink, err) : STATUS_OK;
    if (!status)
        status = output_complete(sink->output, err);
    if (!status && sink->options.force)
        return replace_pair(sink, labels, err);
    return status || !labels ? status : close_part(&state->labels_out, err);
}

static int array_finish(struct sink *sink, struct error *err) {
    struct array_sink *state = sink->state;
    const struct image *shape = &state->shape;
    if (state->samples == 0)
        return error_set(err, STATUS_DATA, "%s: no samples, so their shape is not known",
                         sink->path);
    if (state->big && state->samples > UINT32_MAX)
        return error_set(err, STATUS_DATA, "%s: too many samples for IDX", sink->path);
    struct array array = {
        .element = {shape->type == PIXEL_F32 ? 'f' : 'u', shape->type == PIXEL_F32 ? 4 : 1, false},
        .dimensions = shape->channels > 1 ? 4 : 3,
        .size = {state->samples, (uint64_t)shape->height, (uint64_t)shape->width,
                 (uint64_t)shape->channels},
    };
    int status = write_array(state, sink->output, &array, err);
    if (!status)
        status = spool_copy(state->pixels, sink->output, err);
    if (!status)
        status = check_labels(sink, err);
    return status ? status : finish_pair(sink, err);
}

static const char *labels_name(const struct sink *sink) {
    const struct array_sink *state = sink->state;
    return state->labels_out ? output_name(state->labels_out) : NULL;
}

// Of labels that go elsewhere.
static const char *beside_name(const struct sink *sink) {
    const struct array_sink *state = sink->state;
    const char *labels = labels_name(sink);
    return labels && state->beside && !output_same(state->beside, labels) ? state->beside : NULL;
}

const struct sink_kind sink_idx = {
    .name = "idx",
    .has_labels = true,
    .open = open_idx_sink,
    .put = array_put,
    .finish = array_finish,
    .free = free_array,
    .second = labels_name,
    .beside = beside_name,
};

const struct sink_kind sink_npy = {
    .name = "npy",
    .has_labels = true,
    .open = open_npy_sink,
    .put = array_put,
    .finish = array_finish,
    .free = free_array,
    .second = labels_name,
    .beside = beside_name,
};
