// Our records as a stream: no seek, so that a pipe does as well as a file. The
// names of classes come before the first sample that has them; all of them, the
// index and the tail come at the end.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "sample/arec.h"
#include "sample/sink_kind.h"
#include "store/crc.h"
#include "store/spool.h"

struct arec_sink {
    uint64_t offset; // where the next chunk begins
    uint64_t samples;
    int named;           // classes that were written
    struct spool *index; // entries wait here for the end
    uint8_t *head;       // of the sample, with its key
    size_t head_capacity;
};

static int write_bytes(struct sink *sink, const void *data, size_t size, struct error *err) {
    struct arec_sink *state = sink->state;
    state->offset += size;
    return output_write(sink->output, data, size, err);
}

// A chunk whose body lies in two pieces.
static int write_chunk(struct sink *sink, uint32_t type, uint64_t number, const void *a,
                       size_t a_size, const void *b, size_t b_size, struct error *err) {
    static const uint8_t zeros[8];
    uint8_t header[AREC_CHUNK];
    uint64_t length = (uint64_t)a_size + b_size;
    struct arec_chunk chunk = {.type = type, .number = (uint32_t)number, .length = length};
    chunk.crc = crc32_of(crc32_of(0, a, a_size), b, b_size);
    arec_chunk_encode(header, &chunk);
    int status = write_bytes(sink, header, AREC_CHUNK, err);
    if (!status)
        status = write_bytes(sink, a, a_size, err);
    if (!status)
        status = write_bytes(sink, b, b_size, err);
    return status ? status : write_bytes(sink, zeros, arec_padding(length), err);
}

static int open_arec(struct sink *sink, struct error *err) {
    uint8_t header[AREC_HEADER];
    struct arec_sink *state = sink->state = mem_zeroed(1, sizeof *state);
    if (!state)
        return error_nomem(err);
    arec_header_encode(header);
    int status = spool_open(&state->index, err);
    return status ? status : write_bytes(sink, header, AREC_HEADER, err);
}

static void free_arec(struct sink *sink) {
    struct arec_sink *state = sink->state;
    if (!state)
        return;
    spool_close(state->index);
    free(state->head);
    free(state);
}

// The names from `first` on.
static int write_classes(struct sink *sink, int first, struct error *err) {
    const struct classes *classes = sink->classes;
    int count = classes ? classes->count : 0;
    size_t size = 8;
    for (int i = first; i < count; i++)
        size += strlen(classes->names[i]) + 1;
    uint8_t *body = mem_zeroed(size, 1);
    if (!body)
        return error_nomem(err);
    uint8_t *at = body + 8;
    for (int i = 0; i < 4; i++) {
        body[i] = (uint8_t)(first >> 8 * i);
        body[4 + i] = (uint8_t)((count - first) >> 8 * i);
    }
    for (int i = first; i < count; i++) {
        size_t n = strlen(classes->names[i]) + 1;
        memcpy(at, classes->names[i], n);
        at += n;
    }
    int status = write_chunk(sink, AREC_CLASSES, 0, body, size, NULL, 0, err);
    free(body);
    struct arec_sink *state = sink->state;
    state->named = count;
    return status;
}

// What of the sample goes into the record, and how it is encoded.
static int choose_data(struct sink *sink, const struct sample *sample, struct arec_record *record,
                       struct error *err) {
    const void *data;
    if (sample->encoded_size == 0 && sink->options.codec == CODEC_NONE) {
        const struct image *image = &sample->image;
        record->encoding = image->type == PIXEL_F32 ? AREC_F32 : AREC_U8;
        record->channels = image->channels;
        record->height = image->height;
        record->width = image->width;
        int status = sink_bytes(sink, image, false, &data, &record->size, err);
        record->data = data;
        return status;
    }
    enum codec codec;
    int status = sink_encode(sink, sample, &data, &record->size, &codec, err);
    record->data = data;
    record->encoding = codec == CODEC_JPEG ? AREC_JPEG : codec == CODEC_PNG ? AREC_PNG : AREC_PNM;
    return status;
}

static int make_head(struct arec_sink *state, const struct arec_record *record, struct error *err) {
    size_t size = arec_record_head(record->key_length);
    if (size > state->head_capacity) {
        uint8_t *head = mem_resize(state->head, size, 1);
        if (!head)
            return error_nomem(err);
        state->head = head;
        state->head_capacity = size;
    }
    arec_record_encode(state->head, record);
    return STATUS_OK;
}

// Of a copy, in front of it: the key of its original.
static int write_original(struct sink *sink, const struct sample *sample, struct error *err) {
    struct arec_sink *state = sink->state;
    const char *original = sample_origin(sample);
    size_t length = strlen(original);
    if (!strcmp(original, sample->key))
        return STATUS_OK;
    if (length > AREC_KEY_MAX)
        return error_set(err, STATUS_DATA, "a key of %zu bytes; %d are possible", length,
                         AREC_KEY_MAX);
    return write_chunk(sink, AREC_ORIGINAL, state->samples, original, length, NULL, 0, err);
}

static int arec_put(struct sink *sink, const struct sample *sample, struct error *err) {
    struct arec_sink *state = sink->state;
    struct arec_record record = {.label = sample->label, .key = sample->key};
    record.key_length = strlen(sample->key);
    if (record.key_length > AREC_KEY_MAX)
        return error_set(err, STATUS_DATA, "a key of %zu bytes; %d are possible", record.key_length,
                         AREC_KEY_MAX);
    if (state->samples >= UINT32_MAX)
        return error_set(err, STATUS_DATA, "%s: more than 2^32 - 1 samples", sink->path);
    int status = choose_data(sink, sample, &record, err);
    if (!status && sink->classes && sink->classes->count > state->named)
        status = write_classes(sink, state->named, err);
    if (!status)
        status = write_original(sink, sample, err);
    if (!status)
        status = make_head(state, &record, err);
    if (status)
        return status;
    uint8_t entry[AREC_ENTRY];
    arec_entry_encode(entry, &(struct arec_entry){state->offset, record.label,
                                                  crc32_of(0, record.key, record.key_length)});
    if ((status = spool_write(state->index, entry, AREC_ENTRY, err)))
        return status;
    return write_chunk(sink, AREC_RECORD, state->samples++, state->head,
                       arec_record_head(record.key_length), record.data, record.size, err);
}

static int write_index(struct sink *sink, struct error *err) {
    struct arec_sink *state = sink->state;
    enum { BLOCK = AREC_ENTRIES * AREC_ENTRY };
    uint8_t *block = mem_array(BLOCK, 1);
    int status = block ? spool_rewind(state->index, err) : error_nomem(err);
    size_t got = 0;
    for (uint64_t i = 0; !status && i < state->samples; i += got / AREC_ENTRY) {
        status = spool_read(state->index, block, BLOCK, &got, err);
        if (!status && got == 0)
            status = error_set(err, STATUS_IO, "the temporary file has lost its end");
        if (!status)
            status = write_chunk(sink, AREC_INDEX, i, block, got, NULL, 0, err);
    }
    free(block);
    return status;
}

static int arec_finish(struct sink *sink, struct error *err) {
    struct arec_sink *state = sink->state;
    struct arec_tail tail = {.classes = state->offset, .samples = state->samples};
    uint8_t body[AREC_TAIL];
    int status = write_classes(sink, 0, err);
    tail.index = state->offset;
    if (!status)
        status = write_index(sink, err);
    tail.length = state->offset + AREC_CHUNK + AREC_TAIL;
    arec_tail_encode(body, &tail);
    return status ? status : write_chunk(sink, AREC_END, 0, body, AREC_TAIL, NULL, 0, err);
}

const struct sink_kind sink_arec = {
    .name = "arec",
    .encoded = true,
    .open = open_arec,
    .put = arec_put,
    .finish = arec_finish,
    .free = free_arec,
};
